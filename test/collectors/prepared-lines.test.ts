import { appendFileSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { caseCount, fc, seed } from '../cases.js';
import type { FileInput } from '../../agents/definition/definition.js';
import { loadRejected } from '../../agents/load/load-rejected.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import type { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { lineBytesMax } from '../../engine/core/limits.js';
import { archiveAt, definitionOf, load } from '../agents/load/archive.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { follow, lineOf, range } from './followed-folder.js';

const numRuns = caseCount(20, 500);
const otherwise = { otherwise: 'text' } as const;

describe('lines that are no record of their format', () => {
  it(`have the time of the record before them, over rounds, crashes and threads (seed ${seed})`, async () => {
    const part = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.boolean());
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 10 }), async (parts) => {
        const followed = await follow({ file: otherwise, startMs: Date.UTC(2026, 10, 21) });
        const path = followed.path('web.log');
        const expected: [string, number | null][] = [];
        let text = '';
        let time = 0;
        for (const [i, [others, crashes]] of parts.entries()) {
          time = Date.UTC(2026, 10, 20) + i * 1000;
          const lines = [lineOf(i), ...range(0, others).map((n) => `other-${i}-${n}`)];
          expected.push(
            [lineOf(i).slice(23), time],
            ...lines.slice(1).map((line): [string, number] => [line, time]),
          );
          for (const line of lines) {
            appendFileSync(path, `${line}\n`);
            text += `${line}\n`;
            if (!crashes) continue;
            await followed.collect();
            await followed.crash();
            await followed.start();
          }
        }
        await followed.settle();
        const found = (await followed.records()).map((each) => [each.text, each.time]);
        expect(found).toEqual(expected);
        for (const content of [Buffer.from(text), gzipSync(text)]) {
          const loaded = await follow({ file: otherwise });
          writeFileSync(loaded.path('web.log'), content);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0, rejected: 0 });
          expect((await loaded.records()).map((each) => [each.text, each.time])).toEqual(expected);
        }
      }),
      { numRuns, seed },
    );
  });

  it('have it also where each frame begins with them, on threads', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(join(folder, 'data'))).agent('app', definitionOf().schema);
    const path = join(folder, 'app_web.log');
    const other = (n: number): string => `${n}-${'.'.repeat(100)}\n`;
    writeFileSync(
      path,
      `${other(-1)}${lineOf(1)}\n${range(0, 70_000).map(other).join('')}${lineOf(2)}\n${other(0)}`,
    );
    const summary = await load(store, [path], { definition: definitionOf(otherwise) });
    expect(summary).toMatchObject({ records: 70_004, rejected: 0 });
    let text = '';
    const scan = await store.scan({ limit: 1_000_000, after: { partition: 0, ordinal: 0 }, predicates: [] });
    for await (const piece of scan.lines) text += Buffer.from(piece).toString();
    const times = [...text.matchAll(/"time":(\d+|null)/g)].map(
      ([, time]) => Number(time) - Date.UTC(2026, 10, 20),
    );
    // The first line has no record before it, and so the time of the load.
    expect(new Set(times)).toEqual(new Set([1000, 2000, 36 * 3_600_000]));
    expect(times.filter((time) => time === 1000).length).toBe(70_001);
  });
});

/** All files of a folder as one text. */
function contentOf(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('');
}

describe('masked texts', () => {
  it('are nowhere in the data folder, whatever becomes of their line', async () => {
    const folder = await temporaryFolder();
    const data = join(folder, 'data');
    const store = await (await archiveAt(data)).agent('app', definitionOf().schema);
    const path = join(folder, 'app_web.log');
    const definition = definitionOf({ mask: ['key=(\\w+)'] });
    const long = `key=hunter2 ${'x'.repeat(lineBytesMax)} key=hunter2\n`;
    const rejected = `no-record key=hunter2\n`;
    writeFileSync(path, `${lineOf(1)} key=hunter2 end\n${rejected}${long}${lineOf(2)}\ncut key=hun`);
    const summary = await load(store, [path], { definition });
    expect(summary).toMatchObject({ records: 2, rejected: 3, maskedTexts: 3 });
    appendFileSync(path, `ter2 key=hunter2\n${lineOf(3)}\n`);
    expect(await load(store, [path], { definition })).toMatchObject({ records: 1, rejected: 1 });
    const content = contentOf(data);
    expect(content).toContain('key=***');
    expect(content).not.toMatch(/hunter2|key=hun|ter2/);
    const [first] = await rejectedLines(store);
    expect(first).toBe('no-record key=***');
  });
});

/** What each file of the archive of a followed folder has. */
async function storedBytes(disk: MemoryDirectory, folder = ''): Promise<string> {
  let text = '';
  for (const name of await disk.list(folder)) {
    const path = folder === '' ? name : `${folder}/${name}`;
    if (await disk.isFolder(path)) text += await storedBytes(disk, path);
    else {
      const file = await disk.openRead(path);
      text += Buffer.from(await file.read(0, await disk.size(path))).toString('latin1');
      await file.close();
    }
  }
  return text;
}

describe('masked texts of followed logs', () => {
  const mask = ['key=(\\w+)'];
  const secret = /hunter2|hunt|ter2/;
  const formats: Record<
    string,
    { readonly file: Partial<FileInput>; readonly write: (line: string) => string }
  > = {
    plain: { file: { mask }, write: (line) => `${line}\n` },
    'csv of which the first row is no header': {
      file: { mask, format: 'csv', separator: ';' },
      write: (line) => `${line.replaceAll(' ', ';')}\n`,
    },
    docker: {
      file: { mask, format: 'docker', payload: 'plain' },
      write: (log) =>
        `${JSON.stringify({ log: `${log}\n`, stream: 'stdout', time: '2026-11-20T10:00:00Z' })}\n`,
    },
  };

  it.each(Object.entries(formats))('are nowhere at any time: %s', async (_name, { file, write }) => {
    const followed = await follow({ file });
    const path = followed.path('web.log');
    const check = async (): Promise<void> => {
      expect(secret.exec(await storedBytes(followed.disk))?.input.slice(0, 300)).toBe(undefined);
    };
    const step = async (text: string): Promise<void> => {
      appendFileSync(path, text);
      await followed.collect();
      await check();
    };
    await step(write(`no-record key=hunter2`));
    await step(`${write(`${lineOf(1)} key=hunter2 end`)}cut key=hun`);
    await followed.crash();
    await check();
    await followed.start();
    await step(`ter2\n${write(lineOf(2))}`);
    await step(write(`key=hunter2 ${'x'.repeat(lineBytesMax)} key=hunter2`));
    renameSync(path, `${path}.1`);
    await step(write(`${lineOf(3)} key=hunter2`));
    // The rest of a line whose log is gone is taken as it is.
    await step('rest key=hunter2');
    renameSync(path, `${path}.2`);
    await followed.settle();
    await check();
    await followed.stop();
    await followed.start();
    await followed.settle();
    await check();
    // In the table, the second row is taken for the header, since it has a name of a field.
    const { linesRejected } = await followed.store.stats();
    expect((await followed.records()).length + linesRejected).toBeGreaterThanOrEqual(5);
    expect(await storedBytes(followed.disk)).toContain('key=***');
  });

  it('of containers become records later, with their time', async () => {
    const time = '2026-11-20T10:00:00.5Z';
    const docker = (log: string): string =>
      `${JSON.stringify({ log, stream: 'stderr', attrs: { 'a.b': 'c' }, time })}\n`;
    const multiline = { start: '^\\d', timeoutMs: 1000, linesMax: 9, bytesMax: 9999 };
    const contents = [
      ['docker', docker('1 key=hunter2\n') + docker('  at "x"\n')],
      ['cri', `${time} stderr P 1 key=hun\n${time} stderr F ter2\n${time} stderr F   at "x"\n`],
    ] as const;
    for (const [format, content] of contents) {
      const fields = [
        { name: 'time', type: 'time', source: 'container.time', timestamp: { format: 'rfc3339' } },
        { name: 'n', type: 'int', source: 'n' },
        { name: 'text', type: 'string', source: 'text' },
        {
          name: 'host',
          type: 'string',
          source: format === 'docker' ? 'container.attrs.a.b' : 'container.stream',
        },
      ] as const;
      const file = {
        format,
        payload: 'plain',
        mask,
        multiline,
        regex: '(?s)^(?P<n>\\d) never (?P<text>.*)$',
      } as const;
      const followed = await follow({ file, fields });
      writeFileSync(followed.path('web.log'), content);
      await followed.settle();
      expect(followed.collector.status()).toMatchObject({ records: 0, rejected: 1 });
      const { store, definition, now } = followed;
      const mended = { ...definition, file: { ...definition.file!, regex: '(?s)^(?P<n>\\d) (?P<text>.*)$' } };
      const workers = new WorkerPool(0);
      const summary = await loadRejected({ store, definition: mended, timezone: 'UTC', now, workers });
      expect(summary).toMatchObject({ records: 1, rejected: 0 });
      expect((await followed.records()).map(({ _cursor, ...record }) => record)).toEqual([
        {
          time: Date.parse(time),
          n: 1,
          text: 'key=***\n  at "x"',
          host: format === 'docker' ? 'c' : 'stderr',
        },
      ]);
    }
  });
});

async function rejectedLines(
  store: Awaited<ReturnType<Awaited<ReturnType<typeof archiveAt>>['agent']>>,
): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await store.rejectedFiles())
    for await (const lines of store.rejectedLines(entry))
      found.push(...lines.map(({ line }) => Buffer.from(line).toString()));
  return found;
}
