import { appendFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { caseCount } from '../cases.js';
import { loadRejected } from '../../agents/load/load-rejected.js';
import { loadStream } from '../../agents/load/load-stream.js';
import { loadFiles } from '../../agents/load/load.js';
import type { FileInput } from '../../agents/definition/definition.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { csvValue, recordsIn, written, type Section } from '../agents/decode/table-model.js';
import { follow, type FollowedFolder } from './followed-folder.js';

const workers = new WorkerPool(0);

type File = Partial<FileInput>;
type Rows = (string | null)[][];

const timeOf = (n: number): string => new Date(Date.UTC(2026, 10, 20) + n * 1000).toISOString();

/** What is stored, in the order of time: each row has its own. */
async function rowsOf(followed: FollowedFolder): Promise<Rows> {
  const records = await followed.records();
  return records
    .sort((a, b) => a.time - b.time)
    .map(({ time, n, text }) => [new Date(time).toISOString(), n === null ? null : String(n), text]);
}

/** A log whose header changes, and its records. */
interface TableLog {
  readonly file: File;
  readonly content: string;
  readonly rows: Rows;
}

const texts = ['a', 'line 1\nline 2', 'said "no"', '', null, 'b;c,d', ' x ', '\n\n'];
const section = (names: readonly string[], from: number, count: number): Section => ({
  names,
  rows: Array.from({ length: count }, (_, i) => {
    const cells: Record<string, string | null> = {
      time: timeOf(from + i),
      n: String(from + i),
      text: texts[(from + i) % texts.length]!,
      other: 'o',
    };
    return names.map((name) => cells[name]!);
  }),
});
const sections = [
  section(['time', 'n', 'text', 'other'], 0, 9),
  section(['other', 'n', 'text', 'time'], 9, 4),
  section(['text', 'time', 'other', 'n'], 13, 2),
];
const marks = [true, false, false];
const rows = recordsIn(sections, ['time', 'n', 'text']) as Rows;

const declared = (lines: readonly string[]): string => lines.join('\n') + '\n';
const word = (n: number): string => `w${n}`;

const logs: Record<string, TableLog> = {
  csv: { file: { format: 'csv' }, content: written(sections, ',', csvValue(','), marks), rows },
  'csv without a header': {
    file: { format: 'csv', separator: ';', columns: sections[0]!.names },
    content: written(sections, ';', csvValue(';'), marks).replace(/^.*\n/, ''),
    rows,
  },
  iis: {
    file: { format: 'w3c' },
    content: declared([
      '#Software: IIS',
      '#Fields: time c-ip n text',
      ...[0, 1, 2].map((n) => `${timeOf(n)} 10.0.0.${n} ${n} ${word(n)}`),
      '#Software: IIS',
      '#Fields: time n text c-ip ',
      ...[3, 4].map((n) => `${timeOf(n)} ${n} ${word(n)} 10.0.0.${n}`),
      `${timeOf(5)} - "two words" ann`,
    ]),
    rows: [...[0, 1, 2, 3, 4].map((n) => [timeOf(n), String(n), word(n)]), [timeOf(5), null, 'two words']],
  },
  zeek: {
    file: { format: 'w3c' },
    content: declared([
      '#separator \\x09',
      '#empty_field\t(none)',
      '#unset_field\t~',
      '#fields\ttime\tn\ttext',
      '#types\ttime\tint\tstring',
      `${timeOf(0)}\t0\t(none)`,
      `${timeOf(1)}\t1\t~`,
      `${timeOf(2)}\t2\t-\r`,
      '#fields\tn\ttext\ttime',
      `3\t"a b\t${timeOf(3)}`,
      '#close\t2026',
    ]),
    rows: [
      [timeOf(0), '0', ''],
      [timeOf(1), '1', null],
      [timeOf(2), '2', '-'],
      [timeOf(3), '3', '"a b'],
    ],
  },
};

describe.each(Object.entries(logs))('%s', (_name, { file, content, rows }) => {
  it('is the same, wherever it is cut while it is followed, also by a crash', async () => {
    const bytes = Buffer.from(content);
    const step = Math.max(1, Math.floor(bytes.length / caseCount(120, bytes.length)));
    for (let cut = 0; cut <= bytes.length; cut += step) {
      const followed = await follow({ file });
      const path = followed.path('web.log');
      writeFileSync(path, bytes.subarray(0, cut));
      await followed.collect();
      await followed.crash();
      await followed.start();
      appendFileSync(path, bytes.subarray(cut));
      await followed.collect();
      renameSync(path, `${path}.1`);
      await followed.settle();
      expect([cut, await rowsOf(followed)]).toEqual([cut, rows]);
      expect(followed.collector.status()).toMatchObject({ rejected: 0 });
    }
  }, 120_000);

  it('is the same when it is loaded, at once, compressed, as it grows, and from a stream', async () => {
    const bytes = Buffer.from(content);
    for (const loaded of [bytes, gzipSync(bytes)]) {
      const followed = await follow({ file });
      writeFileSync(followed.path('web.log'), loaded);
      expect(await followed.load('web.log')).toMatchObject({ exitCode: 0, rejected: 0 });
      expect(await rowsOf(followed)).toEqual(rows);
      await followed.settle();
      expect(await rowsOf(followed)).toEqual(rows);
    }
    const grown = await follow({ file });
    for (let at = 0; at < content.length;) {
      // The end of a file that is loaded is the end of its last record, so it is cut between rows.
      const end = content.indexOf('2026', at + 1);
      const feed = end < 0 ? content.length : content.lastIndexOf('\n', end) + 1;
      const next = feed > at ? feed : content.length;
      appendFileSync(grown.path('web.log'), content.slice(at, next));
      at = next;
      const isOpen = file.format === 'csv' && content.slice(0, next).split('"').length % 2 === 0;
      if (!isOpen) await grown.load('web.log');
    }
    expect(await rowsOf(grown)).toEqual(rows);
    const poured = await follow({ file });
    const { store, definition, now } = poured;
    const input = Readable.from(Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)));
    await loadStream({ store, definition, timezone: 'UTC', now, input });
    expect((await rowsOf(poured)).map(([time]) => time)).toEqual(rows.map(([time]) => time));
  });
});

describe('tables', () => {
  const iis = { format: 'w3c' } as const;
  const lines = (header: string, count: number, from = 0): string =>
    Array.from({ length: count }, (_, i) => {
      const cells: Record<string, string> = {
        time: timeOf(from + i),
        n: String(from + i),
        text: 'w',
        x: 'no',
      };
      return `${header.replaceAll(/\w+/g, (name) => cells[name]!)}\n`;
    }).join('');

  it('of several files have headers of their own, and none mixes columns', async () => {
    const followed = await follow({ file: iis });
    const { store, definition, now } = followed;
    const names = ['a', 'b', 'c'];
    const headers = ['time n text x', 'x text n time', 'n x time text'];
    names.forEach((name, i) => {
      writeFileSync(
        followed.path(`${name}.log`),
        `#Fields: ${headers[i]!}\n${lines(headers[i]!, 20_000, i * 20_000)}`,
      );
    });
    const files = names.map((name) => followed.path(`${name}.log`));
    const summary = await loadFiles({ store, definition, now, timezone: 'UTC', files });
    expect(summary).toMatchObject({ records: 60_000, rejected: 0, exitCode: 0 });
    const records = await followed.records();
    const wrong = records.filter(({ n, time, text }) => time !== Date.parse(timeOf(n)) || text !== 'w');
    expect([records.length, wrong]).toEqual([60_000, []]);
  });

  it('tell once which field has no column', async () => {
    const followed = await follow({ file: iis });
    writeFileSync(followed.path('web.log'), `#Fields: time n\n${lines('time n', 2)}#Fields: n time\n`);
    await followed.collect();
    appendFileSync(followed.path('web.log'), lines('n time', 2, 2));
    followed.pass(61_000);
    await followed.collect();
    expect((await followed.records()).map(({ n, text }) => [n, text])).toEqual(
      [0, 1, 2, 3].map((n) => [n, null]),
    );
    const told = followed.log.filter(({ message }) =>
      message.includes('is null where the header has no column'),
    );
    expect(told.map(({ level, message }) => [level, message])).toEqual([
      [
        'warn',
        'lines of logs: text is null where the header has no column "text", such as "#Fields: time n"',
      ],
    ]);
  });

  it('keep a rejected row with its header, and load it again', async () => {
    const followed = await follow({ file: { format: 'csv', separator: ';' } });
    const path = followed.path('web.log');
    writeFileSync(path, `n;x;time;text\n1;x;${timeOf(1)};a;b\ntext;n;x;time\n`);
    await followed.collect();
    appendFileSync(path, `q;2;x;${timeOf(2)};r\nalone\n`);
    await followed.collect();
    expect(await followed.records()).toEqual([]);
    const kept = async (): Promise<[string, string, number][]> => {
      const found: [string, string, number][] = [];
      for (const entry of await followed.store.rejectedFiles())
        for await (const each of followed.store.rejectedLines(entry))
          found.push(
            ...each.map(({ reason, line, offset }): [string, string, number] => [
              reason,
              line.toString(),
              offset,
            ]),
          );
      return found.sort((a, b) => a[2] - b[2]);
    };
    const first = await kept();
    expect(first).toEqual([
      ['has 5 values, but the table has 4 columns', `n;x;time;text\n1;x;${timeOf(1)};a;b`, 14],
      ['has 5 values, but the table has 4 columns', `text;n;x;time\nq;2;x;${timeOf(2)};r`, 61],
      ['has 1 value, but the table has 4 columns', 'text;n;x;time\nalone', 94],
    ]);
    const again = (file: File): ReturnType<typeof loadRejected> =>
      loadRejected({
        store: followed.store,
        definition: { ...followed.definition, file: { ...followed.definition.file!, ...file } },
        timezone: 'UTC',
        now: followed.now,
        workers,
      });
    // Still rejected: they are kept as they were.
    expect(await again({})).toMatchObject({ records: 0, rejected: 3 });
    expect(await kept()).toEqual(first);
    await again({ format: 'csv', separator: ';', columns: ['n', 'x', 'time', 'text', 'more'] });
    // Not under the names of the second header, which the columns of the agent replace.
    expect((await followed.records()).map(({ n, text }) => [n, text])).toEqual([
      [1, 'a'],
      [null, timeOf(2)],
    ]);
  });

  it('of which the first row names no field are rejected until the agent names one', async () => {
    const followed = await follow({ file: { format: 'csv' } });
    writeFileSync(followed.path('web.log'), `Time,No\n${timeOf(1)},1\n${timeOf(2)},2\n`);
    expect((await followed.load('web.log')).files[0]!.error!.message).toMatch(
      /None of its 3 lines .* the first one: has a header that names no source of the agent's fields .*but "Time", "No"/,
    );
    await followed.collect();
    expect(followed.collector.status()).toMatchObject({ records: 0, rejected: 3 });
    const { definition, now, store } = followed;
    const fields = definition.fields.map((field) =>
      field.name === 'time'
        ? { ...field, source: 'Time' }
        : field.name === 'n'
          ? { ...field, source: 'No' }
          : field,
    );
    const mended = { ...definition, fields };
    const summary = await loadRejected({ store, definition: mended, timezone: 'UTC', now, workers });
    expect(summary).toMatchObject({ records: 2, rejected: 0 });
    expect(await rowsOf(followed)).toEqual([1, 2].map((n) => [timeOf(n), String(n), null]));
    expect((await store.stats()).linesRejected).toBe(0);
  });

  it('begin again with the header of the new content if they are truncated', async () => {
    const followed = await follow({ file: { format: 'csv' } });
    const path = followed.path('web.log');
    writeFileSync(path, `time,n,text\n${timeOf(1)},1,a\n${timeOf(2)},2,b\n`);
    await followed.collect();
    truncateSync(path);
    writeFileSync(path, `text,n,time\nc,3,${timeOf(3)}\n`);
    followed.pass(10_000);
    await followed.collect();
    truncateSync(path);
    writeFileSync(path, `d,4,${timeOf(4)}\ne,5,${timeOf(5)}\n`);
    followed.pass(10_000);
    await followed.settle();
    expect(await rowsOf(followed)).toEqual(
      ['a', 'b', 'c'].map((text, i) => [timeOf(i + 1), String(i + 1), text]),
    );
    expect(followed.collector.status()).toMatchObject({ rejected: 2 });
  });

  it('are read from their last rows if only these are wanted, with the header before them', async () => {
    const followed = await follow({ file: { format: 'csv' }, limitLines: 3 });
    const rows = [1, 2, 3].map((n) => `${timeOf(n)},${n},"a\nb"\n`).join('');
    writeFileSync(followed.path('web.log'), `time,n,text\n${rows}`);
    await followed.settle();
    // The third line from the end is inside the second row.
    expect(await rowsOf(followed)).toEqual([2, 3].map((n) => [timeOf(n), String(n), 'a\nb']));
    expect(followed.collector.status()).toMatchObject({ rejected: 0 });
  });

  it('go on after a minute if a quotation mark is not closed', async () => {
    const followed = await follow({ file: { format: 'csv' } });
    writeFileSync(followed.path('web.log'), `time,n,text\n${timeOf(1)},1,"a\n${timeOf(2)},2,b\n`);
    await followed.collect();
    followed.pass(30_000);
    await followed.collect();
    expect(await followed.records()).toEqual([]);
    followed.pass(30_000);
    await followed.collect();
    expect(await rowsOf(followed)).toEqual([[timeOf(2), '2', 'b']]);
    expect(followed.collector.status()).toMatchObject({ rejected: 1 });
  });
});
