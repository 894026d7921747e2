import { createHash } from 'node:crypto';
import { appendFileSync, truncateSync } from 'node:fs';
import { appendFile, mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { LoadEvent } from '../../../agents/load/load-report.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { lineBytesMax } from '../../../engine/core/limits.js';
import { archiveAt, definitionOf, lineOf, lines, load, nowMs, recordsOf, rejectedOf } from './archive.js';
import { gzip, zstd } from './compressed.js';
import { temporaryFolder } from './temporary.js';

interface Place {
  readonly folder: string;
  readonly data: string;
  readonly store: AgentStore;
  readonly write: (name: string, content: string | Uint8Array) => Promise<string>;
}

async function place(): Promise<Place> {
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  const archive = await archiveAt(data);
  const store = await archive.agent('app', definitionOf().schema);
  const write = async (name: string, content: string | Uint8Array): Promise<string> => {
    await writeFile(join(folder, name), content);
    return join(folder, name);
  };
  return { folder, data, store, write };
}

const numbers = async (store: AgentStore): Promise<(number | null)[]> =>
  (await recordsOf(store)).map(({ n }) => n);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('loading a file', () => {
  test('skips a byte order mark at the beginning of a line, whose bytes count in the offsets', async () => {
    const { store, data, write } = await place();
    const path = await write('app_web.log', `\ufeff${lineOf(0)}nonsense\n\ufeff${lineOf(1)}`);
    expect(await load(store, [path])).toMatchObject({ records: 2, rejected: 1, unreadableValues: 0 });
    const times = new Map((await recordsOf(store)).map(({ n, time }) => [n, time]));
    expect(times.get(0)).toBe(Date.UTC(2026, 10, 20));
    expect(times.get(1)).toBe(Date.UTC(2026, 10, 20, 0, 0, 1));
    expect(await rejectedOf(data)).toMatchObject([{ offset: 3 + lineOf(0).length }]);
  });

  test('stores every line, with the fields of the file name, and reports the cost', async () => {
    const { store, write } = await place();
    const content = lines(0, 1000);
    const path = await write('app_web.log', content);
    const events: LoadEvent[] = [];
    const summary = await load(store, [path], { onEvent: (event) => events.push(event) });
    expect(summary).toMatchObject({
      records: 1000,
      rejected: 0,
      contentBytes: content.length,
      loaded: 1,
      known: 0,
      failed: 0,
      stopped: null,
      exitCode: 0,
    });
    expect(summary.bytesOnDisk).toBeGreaterThan(1000);
    expect(summary.files).toMatchObject([{ path, outcome: 'loaded', continuedAt: null, error: null }]);
    const records = await recordsOf(store);
    expect(records.map(({ n }) => n)).toEqual(upTo(1000));
    expect(records[7]).toMatchObject({
      time: Date.UTC(2026, 10, 20, 0, 0, 7),
      text: 'some text of line 7',
      host: 'web',
    });
    expect(events[0]).toEqual({ kind: 'start', path, index: 0, files: 1 });
    expect(events.at(-1)).toEqual({ kind: 'end', index: 0, report: summary.files[0] });
    const progress = events.filter((event) => event.kind === 'progress');
    expect(progress.find(({ phase }) => phase === 'reading')).toMatchObject({
      fraction: 1,
      fileBytes: content.length,
    });
    expect(progress.at(-1)).toMatchObject({ phase: 'writing', fraction: 1, records: 1000 });
    expect((await store.stats()).counters).toMatchObject({ records: 1000, inputBytes: content.length });
  });

  test('gives the same records plain, as gzip and as zstd, sorted by time', async () => {
    const shuffled = fc.sample(fc.shuffledSubarray(upTo(500), { minLength: 500 }), {
      numRuns: 1,
      seed: 1,
    })[0]!;
    const content = shuffled.map(lineOf).join('');
    for (const bytes of [Buffer.from(content), gzip(content), zstd(content)]) {
      const { store, write } = await place();
      await load(store, [await write('app_a.log.1.gz', bytes)]);
      const records = await recordsOf(store);
      expect(records.map(({ n }) => n)).toEqual(upTo(500));
      expect(new Set(records.map(({ host }) => host))).toEqual(new Set(['a']));
    }
  });

  test('keeps rejected lines with reason, file and offset', async () => {
    const { store, write, data } = await place();
    const path = await write('app_a.log', `${lineOf(0)}nonsense\n\n${lineOf(1)}\xff bad\r\n`);
    expect(await load(store, [path])).toMatchObject({ records: 2, rejected: 2, exitCode: 0 });
    expect(await rejectedOf(data)).toMatchObject([
      { file: path, offset: lineOf(0).length, reason: 'does not match the pattern', line: 'nonsense' },
      { file: path, offset: lineOf(0).length * 2 + 10 },
    ]);
    expect((await store.stats()).counters).toMatchObject({ records: 2, rejected: 2 });
  });

  test('keeps the beginning of a line that is too long', async () => {
    const { store, write, data } = await place();
    const long = 'x'.repeat(lineBytesMax * 2);
    const path = await write(
      'app_a.log',
      `${lineOf(0)}${long}\n${lineOf(1)}${long.slice(0, lineBytesMax + 1)}\n`,
    );
    expect(await load(store, [path])).toMatchObject({ records: 2, rejected: 2 });
    expect(await rejectedOf(data)).toMatchObject([
      { reason: expect.stringContaining(`${long.length} bytes`), line: 'x'.repeat(lineBytesMax) },
      { reason: expect.stringContaining(`${lineBytesMax + 1} bytes`), line: 'x'.repeat(lineBytesMax) },
    ]);
  });

  test('counts values that cannot be read, which become null', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', `${lineOf(0)}yesterday - some \xe9 text\n`);
    expect(await load(store, [path])).toMatchObject({ records: 2, unreadableValues: 2 });
    const bad = (await recordsOf(store)).filter(({ n }) => n === null);
    expect(bad).toMatchObject([{ time: null, n: null }]);
    expect((await store.stats()).counters).toMatchObject({ unreadableValues: 2 });
  });

  test('without content, or with empty lines only, does nothing, which is not an error', async () => {
    const { store, write, data } = await place();
    const files = [await write('a', ''), await write('b', gzip('')), await write('c', '\n\r\n\n')];
    const summary = await load(store, files);
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['empty', 'empty', 'empty']);
    expect(summary).toMatchObject({ records: 0, exitCode: 0 });
    expect(await store.checkpoints()).toEqual([]);
    expect(await readdir(join(data, 'app')).catch(() => [])).not.toContain('rejected');
  });

  test('commits by row groups if it is large', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', zstd(lines(0, 150_000)));
    expect(await load(store, [path])).toMatchObject({ records: 150_000 });
    expect(await numbers(store)).toEqual(upTo(150_000));
  });
});

describe('a file that is already stored', () => {
  test('is skipped under any name and compression, and the others are loaded', async () => {
    const { store, write, folder } = await place();
    const content = lines(0, 3000);
    const path = await write('app_a.log', content);
    await load(store, [path]);
    await rename(path, join(folder, 'app_a.log.1'));
    const files = [
      join(folder, 'app_a.log.1'),
      await write('a.gz', gzip(content)),
      await write('a.zst', zstd(content)),
    ];
    const again = await load(store, files);
    expect(again.files.map(({ outcome }) => outcome)).toEqual(['known', 'known', 'known']);
    expect(again).toMatchObject({ records: 0, known: 3, exitCode: 1 });
    const more = await load(store, [...files, await write('b', lines(3000, 3010))]);
    expect(more).toMatchObject({ records: 10, known: 3, loaded: 1, exitCode: 0 });
    expect(await numbers(store)).toEqual(upTo(3010));
  });

  test('is continued at its end after it has grown, any number of times', async () => {
    const { store, write, data } = await place();
    let path = await write('app_a.log', lines(0, 3));
    await load(store, [path]);
    for (const [i, to] of [5, 40, 3000].entries()) {
      await appendFile(path, lines([3, 5, 40][i]!, to));
      const summary = await load(store, [path]);
      expect(summary.files).toMatchObject([{ outcome: 'loaded', records: to - [3, 5, 40][i]! }]);
    }
    path = await write('app_a.log.gz', gzip(lines(0, 3100)));
    expect(await load(store, [path])).toMatchObject({ records: 100, contentBytes: lines(3000, 3100).length });
    expect(await numbers(store)).toEqual(upTo(3100));
    expect(await rejectedOf(data)).toEqual([]);
    expect(await store.checkpoints()).toMatchObject([
      { path, offset: lines(0, 3100).length, records: 3100, rejected: 0, endsInLine: false },
    ]);
  });

  test('is distinguished from another file that begins with the same kilobytes', async () => {
    const { store, write } = await place();
    const banner = '#a-banner-of-some-length\n'.repeat(100);
    const files: string[] = [];
    for (const n of upTo(5)) files.push(await write(`app_${n}.log`, banner + lines(n * 100, n * 100 + 100)));
    expect(await load(store, files)).toMatchObject({
      records: 500,
      rejected: 500,
      known: 0,
      loaded: 5,
    });
    expect(await load(store, files)).toMatchObject({ known: 5, exitCode: 1 });
    await appendFile(files[2]!, lines(900, 910));
    expect(await load(store, files)).toMatchObject({ known: 4, records: 10, exitCode: 0 });
    expect(await numbers(store)).toEqual([...upTo(500), ...upTo(10).map((i) => 900 + i)]);
  });

  test('is stored again on demand', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', lines(0, 10));
    await load(store, [path]);
    expect(await load(store, [path], { again: true })).toMatchObject({ records: 10, known: 0, exitCode: 0 });
    expect((await numbers(store)).length).toBe(20);
    expect(await load(store, [path])).toMatchObject({ known: 1 });
  });

  test('is stored once if it is named twice in one command', async () => {
    for (const merge of [false, true]) {
      const { store, write } = await place();
      const files = [await write('a', lines(0, 10)), await write('b', gzip(lines(0, 10)))];
      expect(await load(store, files, { merge })).toMatchObject({
        records: 10,
        loaded: 1,
        known: 1,
        exitCode: 0,
      });
      expect(await numbers(store)).toEqual(upTo(10));
    }
  });

  test('with a last line without a line end has that line stored; the text after it is not a line of its own', async () => {
    const { store, write, data } = await place();
    const cut = lineOf(1).slice(0, -6);
    const path = await write('app_a.log', lineOf(0) + cut);
    expect(await load(store, [path])).toMatchObject({ records: 2 });
    expect(await store.checkpoints()).toMatchObject([{ endsInLine: true }]);
    await appendFile(path, `ine 1\n${lineOf(2)}`);
    expect(await load(store, [path])).toMatchObject({ records: 1, rejected: 1 });
    expect(await rejectedOf(data)).toMatchObject([
      {
        offset: lineOf(0).length + cut.length,
        line: 'ine 1',
        reason: expect.stringContaining('continues a line'),
      },
    ]);
    expect((await recordsOf(store)).map(({ text }) => text)).toEqual([
      'some text of line 0',
      'some text of l',
      'some text of line 2',
    ]);
    expect(await store.checkpoints()).toMatchObject([{ endsInLine: false, records: 3, rejected: 1 }]);
  });

  test('with a last line without a line end continues normally if only the line end was missing', async () => {
    for (const end of ['\n', '\r\n']) {
      const { store, write, data } = await place();
      const path = await write('app_a.log', lines(0, 2).trimEnd());
      await load(store, [path]);
      await appendFile(path, `${end}${lineOf(2)}`);
      expect(await load(store, [path])).toMatchObject({ records: 1, rejected: 0 });
      expect(await rejectedOf(data)).toEqual([]);
      expect(await numbers(store)).toEqual([0, 1, 2]);
    }
  });

  test('places new records without a readable time by the time of the record before them', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', lines(0, 5));
    await load(store, [path]);
    await appendFile(path, 'never 5 text\n');
    await load(store, [path]);
    // Not in the present hour, in which the first record of a source without a time is placed.
    expect(new Set((await recordsOf(store)).map(({ _cursor }) => _cursor.slice(0, 6))).size).toBe(1);
  });

  test('loses and repeats nothing while it grows in random steps', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 6 }),
        async (steps) => {
          const { store, write } = await place();
          let count = 0;
          for (const [i, step] of steps.entries()) {
            count += step;
            const content = lines(0, count);
            await load(store, [
              await write(`app_${i}.log`, [Buffer.from(content), gzip(content), zstd(content)][i % 3]!),
            ]);
            expect(await numbers(store)).toEqual(upTo(count));
          }
        },
      ),
      { numRuns: caseCount(8, 200) },
    );
  });
});

describe('a file that fails', () => {
  test('leaves nothing, is named, and the others are loaded', async () => {
    for (const [name, compress] of [
      ['gzip', gzip],
      ['zstd', zstd],
    ] as const) {
      const { store, write, data } = await place();
      const whole = compress(lines(0, 100_000));
      const bad = await write('app_bad.log', whole.subarray(0, whole.length - 100));
      const good = await write('app_good.log', lines(0, 10));
      const summary = await load(store, [bad, good]);
      expect(summary).toMatchObject({ records: 10, loaded: 1, failed: 1, stopped: null, exitCode: 1 });
      expect(summary.files[0]).toMatchObject({
        outcome: 'failed',
        path: bad,
        error: { code: 'damaged', path: bad },
      });
      expect(summary.files[0]!.error!.message).toMatch(
        new RegExp(`truncated ${name} file: it ends at byte ${whole.length - 100}`),
      );
      expect(await numbers(store)).toEqual(upTo(10));
      expect((await store.checkpoints()).length).toBe(1);
      expect(await readdir(join(data, 'app', 'building')).catch(() => [])).toEqual([]);
      expect((await store.verify()).unnamedFiles).toEqual([]);
    }
  });

  test('is refused if none of its lines becomes a record', async () => {
    const { store, write, data } = await place();
    const path = await write('other.log', "it's another\nkind of\nlog\n");
    const summary = await load(store, [path]);
    expect(summary).toMatchObject({ records: 0, rejected: 0, failed: 1, exitCode: 1 });
    const { message } = summary.files[0]!.error!;
    expect(message).toContain(`${path} was not stored. None of its 3 lines became a record of agent "app"`);
    expect(message).toContain('does not match the pattern');
    expect(message).toContain(`logstrata check app --line 'it'\\''s another'`);
    expect(await rejectedOf(data)).toEqual([]);
    expect(await store.checkpoints()).toEqual([]);
    expect((await store.stats()).counters).toMatchObject({ records: 0, rejected: 0 });
  });

  test('is not refused if it is known and has grown only by rejected lines', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', lines(0, 5));
    await load(store, [path]);
    await appendFile(path, 'nonsense\n');
    expect(await load(store, [path])).toMatchObject({ records: 0, rejected: 1, loaded: 1, exitCode: 0 });
    expect(await load(store, [path])).toMatchObject({ known: 1 });
  });

  test('because it is missing, a folder, or UTF-16 is named', async () => {
    const { store, write, folder } = await place();
    await mkdir(join(folder, 'sub'));
    const wide = await write('wide.log', Buffer.from(lines(0, 5), 'utf16le'));
    const summary = await load(store, [join(folder, 'gone.log'), join(folder, 'sub'), wide]);
    expect(summary.files.map(({ error }) => error?.code)).toEqual(['not_found', 'invalid', 'unsupported']);
    expect(summary).toMatchObject({ failed: 3, exitCode: 1, records: 0 });
  });

  test('because it is truncated or rewritten during the load leaves nothing', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', lines(0, 50_000));
    const shrink = await load(store, [path], {
      onEvent: (event) => {
        if (event.kind === 'progress' && event.phase === 'reading') truncateSync(path, 1000);
      },
    });
    expect(shrink.files[0]).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringMatching(/shrank|changed/) },
    });
    expect(await numbers(store)).toEqual([]);
    expect(await store.checkpoints()).toEqual([]);
  });
});

describe('a file that is being written', () => {
  test('is stored up to a line that is being written', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', `${lines(0, 20_000)}${lineOf(20_000).slice(0, 20)}`);
    let appended = false;
    const first = await load(store, [path], {
      onEvent: (event) => {
        if (appended || event.kind !== 'progress') return;
        appended = true;
        appendFileSync(path, `${lineOf(20_000).slice(20)}${lineOf(20_001)}`);
      },
    });
    expect(first).toMatchObject({ records: 20_000, rejected: 0, failed: 0 });
    expect(await load(store, [path])).toMatchObject({ records: 2, rejected: 0 });
    expect(await numbers(store)).toEqual(upTo(20_002));
  });

  test('is not stored twice if another process has stored it during the load', async () => {
    const { store, write } = await place();
    const path = await write('app_a.log', lines(0, 100));
    let other: Promise<unknown> | undefined;
    const head = Buffer.from(lines(0, 100)).subarray(0, 1024);
    const checkpoint = {
      headHash: createHash('sha256').update(head).digest('hex'),
      headBytes: 1024,
      offset: 2000,
      contentHash: null,
      endsInLine: false,
      path,
      lastTimeMs: nowMs,
      records: 0,
      rejected: 0,
    };
    const slow: AgentStore = Object.create(store, {
      beginLoad: {
        value: async () => {
          const session = await store.beginLoad();
          const competing = await store.beginLoad();
          const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
          other = competing.commit({ checkpoints: [checkpoint], counters });
          await other;
          return session;
        },
      },
    }) as AgentStore;
    const summary = await load(slow, [path]);
    await other;
    expect(summary.files[0]).toMatchObject({ outcome: 'failed', error: { code: 'conflict' } });
    expect(await numbers(store)).toEqual([]);
  });
});

describe('files that are merged', () => {
  test('are sorted together and loaded as one unit', async () => {
    const { store, write } = await place();
    const even = upTo(1000).filter((n) => n % 2 === 0);
    const odd = upTo(1000).filter((n) => n % 2 === 1);
    const files = [
      await write('app_a.log', even.map(lineOf).join('')),
      await write('app_b.log', gzip(odd.map(lineOf).join(''))),
      await write('empty', ''),
    ];
    const summary = await load(store, files, { merge: true });
    expect(summary).toMatchObject({ records: 1000, loaded: 2, exitCode: 0 });
    expect(summary.bytesOnDisk).toBeGreaterThan(0);
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['loaded', 'loaded', 'empty']);
    const records = await recordsOf(store);
    expect(records.map(({ n }) => n)).toEqual(upTo(1000));
    expect(records.slice(0, 3).map(({ host }) => host)).toEqual(['a', 'b', 'a']);
    expect(await load(store, files, { merge: true })).toMatchObject({ known: 2, exitCode: 1 });
  });

  test('leave nothing if one of them fails', async () => {
    const { store, write } = await place();
    const files = [
      await write('app_a.log', lines(0, 10)),
      await write('app_b.log', gzip(lines(10, 20)).subarray(0, -3)),
      await write('app_c.log', lines(20, 30)),
    ];
    const summary = await load(store, files, { merge: true });
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['not_stored', 'failed', 'not_stored']);
    expect(summary).toMatchObject({ records: 0, failed: 1, exitCode: 1 });
    expect(await numbers(store)).toEqual([]);
    expect(await store.checkpoints()).toEqual([]);
  });
});

describe('a load that is stopped', () => {
  test('keeps finished files, leaves nothing of the current one, and continues the next time', async () => {
    const { store, write, data } = await place();
    const files = [
      await write('app_a.log', lines(0, 10)),
      await write('app_b.log', lines(10, 60_000)),
      await write('app_c.log', lines(60_000, 60_010)),
    ];
    const stop = new AbortController();
    const summary = await load(store, files, {
      signal: stop.signal,
      onEvent: (event) => {
        if (event.kind === 'progress' && event.index === 1) stop.abort();
      },
    });
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['loaded', 'not_stored', 'not_stored']);
    expect(summary).toMatchObject({ records: 10, stopped: { code: 'cancelled' }, exitCode: 1 });
    expect(await numbers(store)).toEqual(upTo(10));
    expect(await readdir(join(data, 'app', 'building')).catch(() => [])).toEqual([]);
    expect(await load(store, files)).toMatchObject({ known: 1, loaded: 2, exitCode: 0 });
    expect(await numbers(store)).toEqual(upTo(60_010));
  });

  test('by a storage failure reports that, and does not try the other files', async () => {
    const { store, write } = await place();
    const files = [await write('app_a.log', lines(0, 10)), await write('app_b.log', lines(10, 20))];
    const session = await store.beginLoad();
    await session.abort();
    const broken: AgentStore = Object.create(store, {
      beginLoad: { value: () => Promise.resolve(session) },
    }) as AgentStore;
    const summary = await load(broken, files);
    expect(summary.files.map(({ outcome }) => outcome)).toEqual(['failed', 'not_stored']);
    expect(summary).toMatchObject({ stopped: { code: 'closed' }, exitCode: 1 });
  });
});
