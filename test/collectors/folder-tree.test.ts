import {
  appendFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Collection } from '../../agents/collect/collection.js';
import { filesMax } from '../../agents/collect/logs/agent-files.js';
import { realLogFiles, type LogFiles } from '../../agents/collect/logs/log-files.js';
import { loadRejected } from '../../agents/load/load-rejected.js';
import type { FileInput } from '../../agents/definition/definition.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { caseCount, fc } from '../cases.js';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { openOn } from '../engine/store/memory-archive.js';
import { follow, followedAgent, lines, type FollowedFolder } from './followed-folder.js';

/** Two levels of folders: `web/a/app.log`, of which the first is the host. */
const file: Partial<FileInput> = {
  folderPatterns: ['(?P<host>[a-z]+)', '[^/]*'],
  namePattern: '[a-z]+\\.log',
};

function write(followed: FollowedFolder, name: string, text: string): void {
  const path = followed.path(name);
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, text);
}

/** Number and host of each record. */
async function hosts(followed: FollowedFolder): Promise<string[]> {
  return (await followed.records()).sort((a, b) => a.n - b.n).map(({ n, host }) => `${n} ${host}`);
}

/** Collects what these paths show to have changed, as a server does that watches the folders. */
async function collectChanged(followed: FollowedFolder, names: readonly string[]): Promise<void> {
  const left = await followed.collector.touch(names.map((name) => followed.path(name)));
  if (left.size > 0) await followed.collector.survey(left);
  for (let round = 'more'; round === 'more';) round = await followed.round();
}

const folder = fc.constantFrom('web', 'db', 'mail');
const place = fc.tuple(folder, fc.constantFrom('a', 'b'), fc.constantFrom('app', 'sql'));
const step = fc.record({
  act: fc.oneof(
    { weight: 5, arbitrary: place.map((at) => ({ kind: 'write', at }) as const) },
    fc.tuple(folder, folder).map(([from, to]) => ({ kind: 'rename', from, to }) as const),
    folder.map((from) => ({ kind: 'remove', from }) as const),
    place.map((at) => ({ kind: 'rotate', at }) as const),
    fc.constant({ kind: 'restart' } as const),
  ),
  whole: fc.boolean(),
});

describe('folders that vary', () => {
  it('come, get other names and go, and each line is read once with its folder', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
        const followed = await follow({ file });
        const expected: string[] = [];
        for (const { act, whole } of steps) {
          let changed: string[] = [];
          if (act.kind === 'write') {
            const [host, sub, app] = act.at;
            const name = `${host}/${sub}/${app}.log`;
            const n = expected.length;
            write(followed, name, lines(n, n + 1));
            changed = [host, `${host}/${sub}`, name];
            expected.push(`${n} ${host}`);
          } else if (act.kind === 'rename') {
            const { from, to } = act;
            if (!existsSync(followed.path(from)) || existsSync(followed.path(to))) continue;
            renameSync(followed.path(from), followed.path(to));
            changed = [from, to];
          } else if (act.kind === 'remove') {
            rmSync(followed.path(act.from), { recursive: true, force: true });
            changed = [act.from];
          } else if (act.kind === 'rotate') {
            const [host, sub, app] = act.at;
            const name = `${host}/${sub}/${app}.log`;
            if (!existsSync(followed.path(name))) continue;
            renameSync(followed.path(name), followed.path(`${name}.1`));
            changed = [name, `${name}.1`];
          } else {
            await followed.stop();
            await followed.start();
          }
          if (whole || act.kind === 'restart') await followed.collect();
          else await collectChanged(followed, changed);
        }
        await followed.settle();
        expect(await hosts(followed)).toEqual(expected);
      }),
      { numRuns: caseCount(40) },
    );
  });

  it('have logs of equal names and equal lines, which are all read, also after a restart', async () => {
    const followed = await follow({ file });
    for (const host of ['web', 'db', 'mail']) write(followed, `${host}/a/app.log`, lines(0, 2));
    await followed.collect();
    await followed.stop();
    await followed.start();
    for (const host of ['web', 'db']) write(followed, `${host}/a/app.log`, lines(2, 3));
    await followed.settle();
    const all = ['db', 'mail', 'web'];
    expect((await hosts(followed)).sort()).toEqual([
      ...all.map((host) => `0 ${host}`),
      ...all.map((host) => `1 ${host}`),
      '2 db',
      '2 web',
    ]);
  });

  it('that cannot be read are named, and their files are not taken for removed', async () => {
    let isDenied = false;
    const files: LogFiles = {
      ...realLogFiles,
      list: (path) =>
        isDenied && path.endsWith('/web/a')
          ? Promise.reject(Object.assign(new Error('EACCES'), { code: 'EACCES' }))
          : realLogFiles.list(path),
    };
    const followed = await follow({ file, files });
    write(followed, 'web/a/app.log', lines(0, 1));
    write(followed, 'db/a/app.log', lines(1, 2));
    await followed.collect();
    isDenied = true;
    write(followed, 'db/a/app.log', lines(2, 3));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1, 2]);
    const warnings = followed.log.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ facts }) => facts['file'])).toEqual([followed.path('web/a')]);
    expect(followed.log.some(({ message }) => message.includes('renamed or removed'))).toBe(false);
  });

  it('that links lead to are followed once, and not where they lead into the data folder', async () => {
    const elsewhere = await temporaryFolder();
    const dataFolder = await temporaryFolder();
    const followed = await follow({ file, dataFolder });
    write(followed, 'web/a/app.log', lines(0, 1));
    symlinkSync('web', followed.path('alias'));
    symlinkSync('.', followed.path('loop'));
    symlinkSync(elsewhere, followed.path('other'));
    symlinkSync(dataFolder, followed.path('own'));
    for (const root of [elsewhere, dataFolder]) {
      mkdirSync(join(root, 'a'));
      writeFileSync(
        join(root, 'a/app.log'),
        lines(root === elsewhere ? 1 : 2, 3).slice(0, lines(1, 2).length),
      );
    }
    await followed.collect();
    expect(await hosts(followed)).toEqual(['0 web', '1 other']);
    const told = followed.log.filter(({ level }) => level === 'warn');
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringContaining(`${followed.path('own')} is inside the data folder`),
    ]);
    // The link leads to another folder now, while the log in the old one grows: both are read.
    const next = await temporaryFolder();
    mkdirSync(join(next, 'a'));
    writeFileSync(join(next, 'a/app.log'), lines(3, 4));
    unlinkSync(followed.path('other'));
    symlinkSync(next, followed.path('other'));
    appendFileSync(join(elsewhere, 'a/app.log'), lines(2, 3));
    await collectChanged(followed, ['other']);
    expect(await hosts(followed)).toEqual(['0 web', '1 other', '2 other', '3 other']);
  });

  it('of which there are too many are read up to the limit, and the number of others is told', async () => {
    const rest = Array.from({ length: filesMax + 2 }, (_, i) => ({
      name: `none${i}`,
      isFolder: true,
      isLink: false,
    }));
    const files: LogFiles = {
      ...realLogFiles,
      list: async (path) => {
        const found = path.includes('/none') ? [] : await realLogFiles.list(path);
        return path.endsWith('/logs') ? [...found, ...rest] : found;
      },
    };
    const followed = await follow({
      file: { folderPatterns: ['[a-z0-9]+'], namePattern: '[a-z]+\\.log' },
      files,
    });
    write(followed, 'web/app.log', lines(0, 1));
    await followed.collect();
    expect(await followed.numbers()).toEqual([0]);
    const told = followed.log.filter(({ level }) => level === 'error');
    expect(told[0]).toMatchObject({
      facts: { files: 3 },
      message: 'too many files or folders match: these are not followed',
    });
  });

  it('give their captures to rejected lines that are loaded again', async () => {
    const followed = await follow({ file });
    write(followed, 'web/a/app.log', 'no-record\n');
    write(followed, 'db/a/app.log', 'no-other\n');
    await followed.collect();
    const { store, definition, now } = followed;
    const mended = { ...definition, file: { ...definition.file!, regex: '^(?P<text>no-.*)$' } };
    const workers = new WorkerPool(0);
    await loadRejected({ store, definition: mended, timezone: 'UTC', now, workers });
    const found = (await followed.records()).map(({ host, text }) => `${host} ${text}`);
    expect(found.sort()).toEqual(['db no-other', 'web no-record']);
  });

  it('keep their names in a file that is loaded, whatever is above them', async () => {
    const followed = await follow({ file });
    write(followed, 'web/a/app.log.1', lines(0, 1));
    write(followed, 'db/a/app.log', lines(0, 1));
    for (const name of ['web/a/app.log.1', 'db/a/app.log', 'db/a/app.log']) await followed.load(name);
    expect((await hosts(followed)).sort()).toEqual(['0 db', '0 web']);
    await followed.collect();
    expect((await hosts(followed)).length).toBe(2);
  });

  it('are rotated in place', async () => {
    const followed = await follow({ file, rotate: { method: 'rename', sizeBytes: 1 } });
    write(followed, 'web/a/app.log', lines(0, 1));
    await followed.settle();
    expect(existsSync(followed.path('web/a/app.log'))).toBe(false);
    expect(existsSync(followed.path('web/a/app.log.1'))).toBe(true);
    expect(await hosts(followed)).toEqual(['0 web']);
  });

  /** Collects from a folder as a server does. Returns the number of records so far. */
  async function collected(directory: string, files: LogFiles): Promise<() => number> {
    const archive = await openOn(new MemoryDirectory());
    closeAtEnd(() => archive.close());
    const definition = followedAgent(directory, file);
    const store = await archive.agent('app', definition.schema);
    const say = (): void => undefined;
    const collection = new Collection({
      files,
      workers: new WorkerPool(0),
      log: { info: say, warn: say, error: say },
      now: Date.now,
      timezone: 'UTC',
      limitLines: 0,
      redefine: () => Promise.resolve(),
      flushMs: 20,
      tailTimeoutMs: 5000,
    });
    closeAtEnd(() => collection.stop());
    await collection.add({ definition, store });
    collection.start();
    return () => collection.status()['app']!.records;
  }

  function put(path: string, n: number): void {
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, lines(n, n + 1));
  }

  it.each(['watched', 'not watched'])('are noticed while a server runs, %s', async (kind) => {
    const directory = await temporaryFolder();
    // Watches on all but two folders are refused, as where the system has no more.
    const watch: LogFiles['watch'] = (path, ...rest) =>
      kind === 'watched' || path === directory ? realLogFiles.watch(path, ...rest) : null;
    const records = await collected(directory, { ...realLogFiles, watch });
    let n = 0;
    for (const host of ['web', 'db', 'web']) {
      for (let i = 0; i < 3; i++) {
        put(join(directory, host, 'a', 'app.log'), n++);
        await expect.poll(records, { timeout: 60_000, interval: 5 }).toBe(n);
      }
      rmSync(join(directory, host), { recursive: true });
    }
  });

  it('do not wait for a survey of all others', async () => {
    const directory = await temporaryFolder();
    const others = 700;
    for (let i = 0; i < others; i++) put(join(directory, 'web', `${i}`, 'app.log'), i);
    /** What is called for each folder that is read. */
    let onList = (_path: string): void => undefined;
    const list: LogFiles['list'] = (path) => {
      onList(path);
      return realLogFiles.list(path);
    };
    const records = await collected(directory, { ...realLogFiles, list });
    // All are read twice: once more when they are watched. Then the survey reads them in turn.
    const reads = new Map<string, number>();
    await new Promise<void>((resolve) => {
      onList = (path) => {
        reads.set(path, (reads.get(path) ?? 0) + 1);
        if (path.includes('/web/') && reads.get(path) === 3) resolve();
      };
    });
    let between = 0;
    const isFound = new Promise<void>((resolve) => {
      onList = (path) => (path.endsWith('/db/new') ? resolve() : void between++);
    });
    put(join(directory, 'db', 'new', 'app.log'), others);
    await isFound;
    expect(between).toBeLessThan(0.8 * others);
    await expect.poll(records, { timeout: 60_000, interval: 5 }).toBe(others + 1);
  });
});
