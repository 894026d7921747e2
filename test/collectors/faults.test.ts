import {
  appendFileSync,
  copyFileSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isLong, seed } from '../cases.js';
import { realLogFiles, type LogFiles, type LogHandle } from '../../agents/collect/logs/log-files.js';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { seededRandom } from '../model/random.js';
import { faultyFiles } from './faulty-files.js';
import { FollowedFolder, lineOf, lines, range, type FollowOptions } from './followed-folder.js';

/** Three rotations of two logs, each with new lines, which faults in between must not affect. */
const linesWritten = 40;

async function history(followed: FollowedFolder, attempt: () => Promise<void>): Promise<void> {
  const web = followed.path('web.log');
  writeFileSync(web, lines(0, 5));
  writeFileSync(followed.path('db.log'), lines(5, 10));
  await attempt();
  appendFileSync(web, lines(10, 15));
  renameSync(web, `${web}.1`);
  writeFileSync(web, lines(15, 20));
  await attempt();
  appendFileSync(web, lines(20, 25));
  copyFileSync(web, `${web}.2`);
  truncateSync(web);
  appendFileSync(web, lines(25, 30));
  await attempt();
  writeFileSync(`${web}.1.gz`, gzipSync(readFileSync(`${web}.1`)));
  unlinkSync(`${web}.1`);
  appendFileSync(web, `${lines(30, 35)}no record\n`);
  appendFileSync(followed.path('db.log'), lines(35, linesWritten));
  await attempt();
}

/** Now, or some hours ago if midnight is near: a hot file ends with its day, and stays until no query can need it any more. */
function farFromMidnightMs(): number {
  const hourMs = 3_600_000;
  const nowMs = Date.now();
  return nowMs % (24 * hourMs) < 22 * hourMs ? nowMs : nowMs - 2 * hourMs;
}

/** A folder whose archive fails according to a plan, and which collects until it has everything. */
async function withStorageFault(
  at: number,
  kind: 'fail' | 'crash' | 'full',
): Promise<{ numbers: number[]; mutations: number }> {
  const followed = new FollowedFolder(await temporaryFolder(), { startMs: farFromMidnightMs() });
  await followed.start();
  const base = followed.disk.mutations;
  if (kind === 'fail') followed.disk.setFaults({ failAtOperation: base + at, seed: at });
  if (kind === 'crash') followed.disk.setFaults({ crashAtOperation: base + at, seed: at });
  if (kind === 'full') followed.disk.setFaults({ freeBytes: at * 500, seed: at });
  const attempt = async (): Promise<void> => {
    try {
      await followed.collect();
    } catch {
      if (!followed.disk.crashed) return;
      await followed.crash();
      await followed.start();
    }
  };
  await history(followed, attempt);
  followed.disk.setFaults({});
  if (followed.disk.crashed) {
    await followed.crash();
    await followed.start();
  }
  await followed.settle();
  const numbers = await followed.numbers();
  const mutations = followed.disk.mutations - base;
  // The failure has left neither files nor names of empty files behind.
  const { damages, unnamedFiles } = await followed.store.verify();
  expect({ at, damages, unnamedFiles }).toEqual({ at, damages: [], unnamedFiles: [] });
  await followed.stop();
  // A restart shows the content of the disk, rather than the state in the process.
  await followed.start();
  await followed.settle();
  expect(await followed.numbers()).toEqual(numbers);
  expect((await followed.store.verify()).damages).toEqual([]);
  await followed.stop();
  return { numbers, mutations };
}

describe('of the archive', () => {
  it.each(['fail', 'crash', 'full'] as const)(
    'lose and repeat nothing at any operation: %s',
    async (kind) => {
      const { numbers, mutations } = await withStorageFault(1_000_000, kind);
      expect(numbers).toEqual(range(0, linesWritten));
      expect(mutations).toBeGreaterThan(20);
      const step = isLong ? 1 : kind === 'full' ? 3 : 2;
      for (let at = 1; at <= mutations; at += step) {
        expect({ at, numbers: (await withStorageFault(at, kind)).numbers }).toEqual({
          at,
          numbers: range(0, linesWritten),
        });
      }
    },
  );

  it('are reported once, and again when they are over', async () => {
    const followed = new FollowedFolder(await temporaryFolder());
    await followed.start();
    closeAtEnd(() => followed.stop());
    await followed.collect();
    followed.disk.setFaults({ freeBytes: 0 });
    writeFileSync(followed.path('web.log'), lines(0, 3));
    for (let i = 0; i < 3; i++)
      await followed.collect().catch((error: unknown) => followed.collector.pause(error));
    const errors = followed.log.filter(({ level }) => level === 'error');
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ facts: { agent: 'app', code: 'disk_full' } });
    expect(errors[0]!.message).toMatch(/^collection is paused: .*full/);
    expect(followed.collector.status().paused).toMatch(/full/);
    expect(await followed.numbers()).toEqual([]);
    followed.disk.setFaults({});
    await followed.collect();
    followed.collector.resume();
    expect(await followed.numbers()).toEqual([0, 1, 2]);
    expect(followed.log.at(-1)).toMatchObject({ level: 'info', message: 'collection continues' });
  });
});

describe('of the logs', () => {
  async function withLogFault(files: LogFiles, options: FollowOptions = {}): Promise<FollowedFolder> {
    const followed = new FollowedFolder(await temporaryFolder(), { ...options, files });
    await followed.start();
    closeAtEnd(() => followed.stop());
    return followed;
  }

  it.each(['EIO', 'EMFILE', 'EACCES'])('%s at any call loses and repeats nothing', async (code) => {
    const count = async (at: number): Promise<number> => {
      const files = faultyFiles(({ number }) => (number >= at && number < at + 3 ? code : null));
      const followed = await withLogFault(files);
      await history(followed, () => followed.collect().catch(() => {}));
      for (let i = 0; i < 3; i++) {
        followed.pass(61_000);
        await followed.collect().catch(() => {});
      }
      while (
        !(await followed.settle().then(
          () => true,
          () => false,
        ))
      );
      expect({ at, numbers: await followed.numbers() }).toEqual({ at, numbers: range(0, linesWritten) });
      return files.calls();
    };
    const calls = await count(1_000_000);
    for (let at = 1; at <= calls; at += isLong ? 1 : 7) await count(at);
  });

  it('name a log that cannot be read, and do not stop the others', async () => {
    let forbidden = true;
    const files = faultyFiles(({ operation, path }) =>
      forbidden && operation === 'open' && path.endsWith('web.log') ? 'EACCES' : null,
    );
    const followed = await withLogFault(files);
    writeFileSync(followed.path('web.log'), lines(0, 2));
    writeFileSync(followed.path('db.log'), lines(2, 4));
    for (let i = 0; i < 3; i++) {
      await followed.collect();
      followed.pass(61_000);
    }
    expect(await followed.numbers()).toEqual([2, 3]);
    const warnings = followed.log.filter(({ level }) => level === 'warn');
    expect(warnings).toHaveLength(1);
    expect(warnings[0]!.message).toMatch(/web\.log can't be read: user \S+ has no permission/);
    expect(followed.collector.waits).toBe(true);
    forbidden = false;
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1, 2, 3]);
    expect(followed.log.some(({ message }) => message === 'a log can be read again')).toBe(true);
  });

  it('name all unreadable logs at once, except for rotated ones that are completely stored', async () => {
    let forbidden = false;
    const files = faultyFiles(({ operation }) => (forbidden && operation === 'open' ? 'EACCES' : null));
    const followed = await withLogFault(files);
    writeFileSync(followed.path('web.log.1'), lines(0, 2));
    writeFileSync(followed.path('web.log.2.gz'), gzipSync(lines(2, 4)));
    await followed.load('web.log.1');
    await followed.load('web.log.2.gz');
    forbidden = true;
    writeFileSync(followed.path('web.log'), lines(4, 6));
    writeFileSync(followed.path('db.log'), lines(6, 8));
    writeFileSync(followed.path('db.log.1'), lines(8, 10));
    for (let i = 0; i < 3; i++) {
      await followed.collect();
      followed.pass(61_000);
    }
    const warnings = followed.log.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^3 logs in \S+ can't be read: user \S+ has no permission \((?:db|web)\.log.*, .*db\.log\.1\)$/,
      ),
    ]);
    forbidden = false;
    await followed.settle();
    expect((await followed.numbers()).sort((a, b) => a - b)).toEqual(range(0, 10));
  });

  it('that keep the collector from checking a name do not end the line that is being written there', async () => {
    let isSeen = true;
    const files = faultyFiles(({ operation }) => (operation === 'status' && !isSeen ? 'EIO' : null));
    const followed = await withLogFault(files);
    const path = followed.path('web.log');
    const cut = 30;
    writeFileSync(path, `${lines(0, 1)}${lineOf(1).slice(0, cut)}`);
    await followed.collect();
    isSeen = false;
    await followed.settle();
    isSeen = true;
    appendFileSync(path, `${lineOf(1).slice(cut)}\n`);
    await followed.settle();
    expect(await followed.numbers()).toEqual([0, 1]);
    expect(followed.collector.status()).toMatchObject({ records: 2, rejected: 0 });
  });

  it('that keep a copy from being read keep its identity, however old that is', async () => {
    let isForbidden = true;
    const files = faultyFiles(({ operation, path }) =>
      isForbidden && operation === 'open' && path.endsWith('.2') ? 'EACCES' : null,
    );
    const followed = await withLogFault(files);
    const path = followed.path('web.log');
    writeFileSync(path, lines(0, 1));
    writeFileSync(`${path}.1`, lines(1, 6));
    await followed.settle();
    copyFileSync(`${path}.1`, `${path}.2`);
    unlinkSync(`${path}.1`);
    for (const days of [100, 2, 2]) {
      followed.pass(days * 24 * 3_600_000);
      await followed.settle();
    }
    isForbidden = false;
    followed.pass(61_000);
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 6));
  });

  it('name a log whose name is not UTF-8, once, until it is renamed', async () => {
    const file = { namePattern: '(?P<host>.+)\\.log' };
    const followed = await withLogFault(realLogFiles, { file });
    const odd = Buffer.concat([Buffer.from(followed.path('web')), Buffer.of(0xff), Buffer.from('.log')]);
    const whole = followed.path('web.log');
    writeFileSync(odd, lines(0, 2));
    for (let i = 0; i < 3; i++) {
      await followed.collect();
      followed.pass(61_000);
    }
    const warnings = followed.log.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining("can't be read: its name is not UTF-8; rename it"),
    ]);
    renameSync(odd, whole);
    await followed.collect();
    expect(await followed.numbers()).toEqual([0, 1]);
  });

  /** Reads that return at most a given number of bytes, and are counted. */
  function shortReads(bytesMax: () => number): LogFiles & { reads: number } {
    const counted = {
      ...realLogFiles,
      reads: 0,
      open: async (path: string): Promise<LogHandle> => {
        const handle = await realLogFiles.open(path);
        const read: LogHandle['read'] = (bytes, at, length, position) => {
          counted.reads++;
          return handle.read(bytes, at, Math.min(length, bytesMax()), position);
        };
        return { read, status: () => handle.status(), close: () => handle.close() };
      },
    };
    return counted;
  }

  it(`may return fewer bytes than requested (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const files = shortReads(() => 1 + Math.floor(random() * 300));
    const followed = new FollowedFolder(await temporaryFolder(), { files });
    await followed.start();
    await history(followed, () => followed.settle());
    expect(await followed.numbers()).toEqual(range(0, linesWritten));
    await followed.stop();
  });

  it('read a log that gained a few lines once in a round', async () => {
    const files = shortReads(() => Infinity);
    const followed = new FollowedFolder(await temporaryFolder(), { files });
    await followed.start();
    const names = ['a.log', 'b.log', 'c.log'];
    for (const [i, name] of names.entries()) writeFileSync(followed.path(name), lines(i, i + 1));
    await followed.collect();
    for (let round = 1; round <= 3; round++) {
      files.reads = 0;
      for (const [i, name] of names.entries())
        appendFileSync(followed.path(name), lines(3 * round + i, 3 * round + i + 1));
      await followed.collect();
      expect(files.reads).toBe(names.length);
    }
    expect(await followed.numbers()).toEqual(range(0, 12));
    await followed.stop();
  });

  it('read no log for which a commit has no room', async () => {
    const files = shortReads(() => Infinity);
    const followed = new FollowedFolder(await temporaryFolder(), { files });
    await followed.start();
    const names = Array.from({ length: 40 }, (_, i) => `${'x'.repeat(i + 1)}.log`);
    for (const [i, name] of names.entries()) writeFileSync(followed.path(name), lines(i, i + 1));
    await followed.collect();
    // A commit holds 4 MiB of them: sixteen files.
    const gain = `${lineOf(100)} ${'x'.repeat(256 * 1024)}\n`;
    for (const name of names) appendFileSync(followed.path(name), gain);
    await followed.collector.survey();
    let rounds = 0;
    for (let more = true; more; rounds++) {
      files.reads = 0;
      more = (await followed.round()) === 'more';
      expect(files.reads).toBeLessThan(25);
    }
    expect(rounds).toBe(3);
    expect(await followed.numbers()).toEqual([...range(0, 40), ...names.map(() => 100)]);
    await followed.stop();
  });

  /** Reads that continue together, either when as many wait as there are lanes, or when no other call is under way. */
  function readsInStep(): LogFiles {
    let waiting: { goesOn: boolean }[] = [];
    let underWay = 0;
    const call = async <T>(made: () => Promise<T>): Promise<T> => {
      underWay++;
      return made().finally(() => underWay--);
    };
    const inStep = async (): Promise<void> => {
      const own = { goesOn: false };
      waiting.push(own);
      // A lane that is not waiting makes its next call within one turn.
      for (let quietTurns = 0; !own.goesOn; quietTurns = underWay === 0 ? quietTurns + 1 : 0) {
        if (waiting.length === 4 || quietTurns > 3) {
          for (const each of waiting) each.goesOn = true;
          waiting = [];
        }
        await nextTurn();
      }
    };
    return {
      ...realLogFiles,
      status: (path) => call(() => realLogFiles.status(path)),
      open: async (path) => {
        const handle = await call(() => realLogFiles.open(path));
        const read: LogHandle['read'] = async (bytes, at, length, position) => {
          const done = await call(() => handle.read(bytes, at, length, position));
          await inStep();
          return done;
        };
        return { read, status: () => call(() => handle.status()), close: () => handle.close() };
      },
    };
  }

  it('that end one commit together are not first again in the next', async () => {
    const followed = new FollowedFolder(await temporaryFolder(), { files: readsInStep() });
    await followed.start();
    const names = [...'abcdefghijkl'].map((letter) => `${letter}.log`);
    const text = `${lineOf(1)} ${'x'.repeat(64 * 1024)}\n`.repeat(32);
    for (const name of names) writeFileSync(followed.path(name), text);
    await followed.collector.survey();
    // Each has 2 MiB, and four of them share the 4 MiB of a commit.
    for (let round = 0; round < 3; round++) expect(await followed.round()).toBe('more');
    const unread = followed.collector.status().files.filter(({ offset }) => offset === 0);
    expect(unread.map(({ path }) => path)).toEqual([]);
    await followed.stop();
  });

  it('let many files take turns with few handles', async () => {
    const names = Array.from(
      { length: 60 },
      (_, i) => `x${String.fromCharCode(97 + (i % 26), (97 + i / 26) | 0)}.log`,
    );
    let open = 0;
    const files = faultyFiles(({ operation }) => (operation === 'open' && open >= 20 ? 'EMFILE' : null));
    const counting: LogFiles = {
      ...files,
      open: async (path) => {
        const handle = await files.open(path);
        open++;
        return { ...handle, close: () => (open--, handle.close()) };
      },
    };
    const followed = await withLogFault(counting, { handlesMax: 1000 });
    for (let round = 0; round < 3; round++) {
      names.forEach((name, i) =>
        appendFileSync(followed.path(name), lines(round * 100 + i, round * 100 + i + 1)),
      );
      await followed.settle();
    }
    expect(await followed.numbers()).toEqual(
      [0, 1, 2].flatMap((round) => range(round * 100, round * 100 + 60)),
    );
    expect(open).toBeLessThanOrEqual(20);
  });
});
