import { appendFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import type { LoadFilesOptions } from '../../../agents/load/load.js';
import type { LoadSummary } from '../../../agents/load/load-report.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { batchFromRows } from '../../model/rows.js';
import { hourMs } from '../../../engine/core/cursor.js';
import { LogstrataError } from '../../../engine/core/errors.js';
import { loadRunsMax, loadSourceRuns } from '../../../engine/core/limits.js';
import type { RepairReport } from '../../../engine/maintenance/repair.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { openOn } from '../../engine/store/memory-archive.js';
import { definitionOf, lineOf, lines, load, nowMs, pour, recordsOf, type Stored } from './archive.js';
import { gzip, zstd } from './compressed.js';
import { temporaryFolder } from './temporary.js';

const dayMs = 24 * hourMs;

/** Runs a function with the store of an archive, and closes the archive. */
async function withStore<T>(
  directory: MemoryDirectory,
  use: (store: AgentStore) => Promise<T>,
  now = nowMs,
): Promise<T> {
  const archive = await openOn(directory, () => now);
  try {
    return await use(await archive.agent('app', definitionOf().schema));
  } finally {
    await archive.close();
  }
}

const loadAll = (
  directory: MemoryDirectory,
  files: readonly string[],
  options: Partial<LoadFilesOptions> = {},
): Promise<LoadSummary> => withStore(directory, (store) => load(store, files, options));
const allOf = (directory: MemoryDirectory): Promise<Stored[]> => withStore(directory, recordsOf);

async function segmentsOf(directory: MemoryDirectory): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of await directory.list('app')) {
    if (!folder.startsWith('dt=')) continue;
    for (const name of await directory.list(`app/${folder}`)) paths.push(`app/${folder}/${name}`);
  }
  return paths.sort();
}

async function repair(directory: MemoryDirectory): Promise<RepairReport> {
  const archive = await openOn(directory, () => nowMs);
  try {
    return await archive.repair('app', { adopt: () => Promise.resolve(true) });
  } finally {
    await archive.close();
  }
}

/** Loses the segments with the chosen numbers, and repairs. */
async function lose(
  directory: MemoryDirectory,
  isLost: (index: number) => boolean = () => true,
): Promise<RepairReport> {
  for (const [index, path] of (await segmentsOf(directory)).entries())
    if (isLost(index)) await directory.remove(path);
  return repair(directory);
}

const lostOf = ({ lost }: RepairReport): number => lost.reduce((sum, { records }) => sum + (records ?? 0), 0);

/** A file of lines at these seconds of three days. */
async function fileOf(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, content);
  return path;
}

/** `count` lines, one per minute, so that a thousand take most of a day. */
const minutes = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => lineOf((from + i) * 60)).join('');

describe('records that a repair has lost', () => {
  it('are read again under the header of their table, also behind the part that it lies in', async () => {
    const directory = new MemoryDirectory();
    const options = { definition: definitionOf({ format: 'csv' }) };
    const rows = (from: number, to: number): string =>
      Array.from({ length: to - from }, (_, i) =>
        lineOf(from + i)
          .replace(' ', ',')
          .replace(' ', ','),
      ).join('');
    const path = await fileOf('app_web.log', `time,n,text\n${rows(0, 3)}`);
    await loadAll(directory, [path], options);
    await appendFile(path, rows(3, 7));
    expect(await loadAll(directory, [path], options)).toMatchObject({ records: 4, rejected: 0 });
    const before = await allOf(directory);
    expect(before.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(lostOf(await lose(directory))).toBe(7);
    expect(await loadAll(directory, [path], options)).toMatchObject({ restored: 7 });
    expect(await allOf(directory)).toEqual(before);
  });

  const line = fc.record({
    second: fc.integer({ min: 0, max: 200_000 }),
    kind: fc.constantFrom('good', 'good', 'good', 'untimed', 'rejected'),
  });
  const textOf = ({ second, kind }: { second: number; kind: string }): string =>
    kind === 'good'
      ? lineOf(second)
      : kind === 'untimed'
        ? `yesterday ${second} has no time\n`
        : `rejected:${second}\n`;

  it('are restored except for those that were removed on demand, also within the same hour', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', minutes(0, 300));
    await loadAll(directory, [path]);
    const whole = await allOf(directory);
    const times = whole.map(({ time }) => time!).sort((a, b) => a - b);
    // Parts of two hours, all of the hour between them, and again a part of the first.
    for (const [from, until] of [
      [50, 150],
      [30, 35],
    ] as const)
      await withStore(directory, (store) =>
        store.remove({ kind: 'times', sinceMs: times[from]!, untilMs: times[until]! }),
      );
    const before = await allOf(directory);
    expect(before).toHaveLength(195);
    await withStore(directory, async (store) => expect(await store.lostLoads()).toEqual([]));
    const report = await lose(directory);
    expect([lostOf(report), report.lostForGood]).toEqual([195, 0]);
    expect(await allOf(directory)).toEqual([]);
    expect(await loadAll(directory, [path])).toMatchObject({ restored: 195, loaded: 0 });
    expect(await allOf(directory)).toEqual(before);
    expect(await loadAll(directory, [path])).toMatchObject({ restored: 0, loaded: 0, known: 1 });
    const { restorable, damages } = await withStore(directory, (store) => store.verify());
    expect([restorable, damages]).toEqual([[], []]);
  });

  it('are restored at their positions, next to surviving ones, when their file is loaded again', async () => {
    let came = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 20, maxLength: 150 }),
        fc.array(fc.integer({ min: 1, max: 4000 }), { maxLength: 3 }),
        fc.array(fc.constantFrom(true, true, false), { minLength: 7, maxLength: 7 }),
        fc.boolean(),
        async (texts, cuts, lost, compacts) => {
          const directory = new MemoryDirectory();
          const content = texts.map(textOf).join('');
          const path = await fileOf('app_a.log', '');
          // The file is loaded each time it has grown, also in the middle of lines.
          for (const end of [...cuts.sort((a, b) => a - b), content.length]) {
            await writeFile(path, content.slice(0, end));
            await loadAll(directory, [path]);
          }
          if (compacts) await withStore(directory, (store) => store.compact());
          const before = await allOf(directory);
          const report = await lose(directory, (index) => lost[index % lost.length]!);
          expect(report.lostForGood).toBe(0);
          const left = await allOf(directory);
          expect(before.length - left.length).toBe(lostOf(report));
          const cursors = new Set(left.map(({ _cursor }) => _cursor));
          expect(before.filter(({ _cursor }) => cursors.has(_cursor))).toEqual(left);

          const summary = await loadAll(directory, [path]);
          came += summary.restored;
          expect(summary.restored).toBe(lostOf(report));
          expect(await allOf(directory)).toEqual(before);
          expect(await loadAll(directory, [path])).toMatchObject({ restored: 0, loaded: 0, records: 0 });
          expect(await allOf(directory)).toEqual(before);
          const { restorable, damages, unnamedFiles } = await withStore(directory, (store) => store.verify());
          expect([restorable, damages, unnamedFiles]).toEqual([[], [], []]);
        },
      ),
      { numRuns: caseCount(40), seed: 7 },
    );
    expect(came).toBeGreaterThan(caseCount(500));
  });

  it('are reported by verify, stats and the repair, with their file, until they are restored', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', minutes(0, 2000));
    await loadAll(directory, [path]);
    const report = await lose(directory, (index) => index === 0);
    const restorable = [{ records: 1440, paths: [path] }];
    expect(report).toMatchObject({ restorable, lostForGood: 0 });
    expect(await withStore(directory, (store) => store.verify())).toMatchObject({ restorable });
    expect(await withStore(directory, (store) => store.stats())).toMatchObject({ restorable });
    expect(await repair(directory)).toMatchObject({ changed: false, restorable });
    const summary = await loadAll(directory, [path]);
    expect(summary).toMatchObject({ restored: 1440, loaded: 0, known: 0, exitCode: 0 });
    expect(summary.files).toMatchObject([{ outcome: 'restored', restored: 1440, records: 0 }]);
    const stats = await withStore(directory, (store) => store.stats());
    expect(stats).toMatchObject({ restorable: [], counters: { records: 2000 } });
    const again = await loadAll(directory, [path]);
    expect(again).toMatchObject({ restored: 0, known: 1, exitCode: 1 });
    expect(again.files).toMatchObject([{ outcome: 'known' }]);
  });

  it('are restored by row groups, including those that were late in their file', async () => {
    const directory = new MemoryDirectory();
    const late = (n: number): number => (n % 1000 === 999 && n > 150_000 ? n - 150_000 : n);
    const path = await fileOf(
      'app_a.log',
      Array.from({ length: 200_000 }, (_, n) => lineOf(late(n) / 4)).join(''),
    );
    await loadAll(directory, [path]);
    const before = await allOf(directory);
    expect(before).toHaveLength(200_000);
    const [first, second] = await segmentsOf(directory);
    expect(second).toBeDefined();
    const file = await directory.openWrite(first!);
    await file.write(Math.floor((await directory.size(first!)) * 0.5), new Uint8Array(64).fill(0xa5));
    await file.sync();
    await file.close();
    await directory.remove(second!);
    const report = await repair(directory);
    const left = await allOf(directory);
    expect(left.length).toBeGreaterThan(65_535);
    expect((await loadAll(directory, [path])).restored).toBe(lostOf(report));
    expect(lostOf(report)).toBe(before.length - left.length);
    // Compared as one text: a difference between so many records is not worth listing.
    expect(JSON.stringify(await allOf(directory)) === JSON.stringify(before)).toBe(true);
  });

  it('are restored from a copy that is compressed, renamed or has grown, and loading continues where it ended', async () => {
    for (const pack of [gzip, zstd, (text: string) => Buffer.from(text)]) {
      const directory = new MemoryDirectory();
      const path = await fileOf('app_web.log', minutes(0, 600));
      await loadAll(directory, [path]);
      const before = await allOf(directory);
      await lose(directory);
      const copy = await fileOf('app_other.log', pack(minutes(0, 700)));
      expect(await loadAll(directory, [copy])).toMatchObject({ restored: 600, records: 100, loaded: 1 });
      const after = await allOf(directory);
      expect(after.slice(0, 600)).toEqual(before);
      expect(after).toHaveLength(700);
      expect(before[0]).toMatchObject({ host: 'web' });
    }
  });

  it('are restored with their years, however often their file is touched', async () => {
    const directory = new MemoryDirectory();
    const plain = definitionOf({ regex: '^(?P<time>\\w{3} [ \\d]\\d \\S+) (?P<n>\\d+) (?P<text>.*)$' });
    const [time, ...others] = plain.fields;
    const fields = [{ ...time!, timestamp: { format: 'stamp', timezone: 'UTC' } }, ...others];
    const definition = { ...plain, fields } as AgentDefinition;
    const path = await fileOf('app_a.log', 'Nov 17 10:00:00 1 some text\nNov 18 11:00:00 2 some text\n');
    await utimes(path, Date.UTC(2024, 10, 20) / 1000, Date.UTC(2024, 10, 20) / 1000);
    await loadAll(directory, [path], { definition });
    const before = await allOf(directory);
    expect(before[0]!.time).toBe(Date.UTC(2024, 10, 17, 10));
    await lose(directory);
    // Counted back from the new end of the file, the earlier lines would be a year older.
    await appendFile(path, 'Jan  5 12:00:00 3 some text\n');
    await utimes(path, Date.UTC(2026, 10, 20) / 1000, Date.UTC(2026, 10, 20) / 1000);
    expect(await loadAll(directory, [path], { definition })).toMatchObject({ restored: 2, records: 1 });
    expect((await allOf(directory)).slice(0, 2)).toEqual(before);
  });

  it('that were placed by the clock are restored to their hours, long after', async () => {
    const directory = new MemoryDirectory();
    const ahead = lines(130_000, 130_010).replaceAll('2026', '2027');
    const path = await fileOf('app_a.log', `yesterday 1 no time\n${lines(0, 5)}${ahead}`);
    await loadAll(directory, [path]);
    const before = await allOf(directory);
    await lose(directory);
    const later = await withStore(directory, (store) => load(store, [path]), nowMs + 400 * dayMs);
    expect(later.restored).toBe(16);
    expect(await allOf(directory)).toEqual(before);
  });

  it('of merged files are restored when all of those are named, and otherwise say that they need all', async () => {
    const directory = new MemoryDirectory();
    const even = Array.from({ length: 500 }, (_, i) => lineOf(i * 600)).join('');
    const odd = Array.from({ length: 500 }, (_, i) => lineOf(Math.ceil(i / 2) * 1200)).join('');
    const [one, two] = [await fileOf('app_a.log', even), await fileOf('app_b.log', odd)];
    await loadAll(directory, [one, two], { merge: true });
    const before = await allOf(directory);
    await lose(directory, (index) => index % 2 === 0);
    const left = await allOf(directory);
    const alone = await loadAll(directory, [two]);
    expect(alone).toMatchObject({ restored: 0, failed: 1, exitCode: 1 });
    expect(alone.files[0]!.error!.message).toContain(`${one}, with its content of that time, is missing`);
    expect(await allOf(directory)).toEqual(left);
    // Neither their order in the command nor a repeated merge matters.
    for (const merge of [false, true]) {
      await lose(directory);
      const summary = await loadAll(directory, [two, one], { merge });
      expect(summary).toMatchObject({ restored: before.length, records: 0, failed: 0, exitCode: 0 });
      expect(await allOf(directory)).toEqual(before);
    }
  });

  it('are not restored if their file now gives other records, and the failure says what to do', async () => {
    const directory = new MemoryDirectory();
    const odd = `${lineOf(30).replace('some', 'red')}${lineOf(90).replace('some', 'blue')}`;
    const path = await fileOf('app_a.log', `${minutes(0, 1500)}${odd}`);
    const reading = (words: string): { definition: AgentDefinition } => {
      return {
        definition: definitionOf({ regex: `^(?P<time>\\S+) (?P<n>\\S+) (?P<text>(?:${words}) .*)$` }),
      };
    };
    await loadAll(directory, [path], reading('some|red'));
    const before = await allOf(directory);
    expect(before).toHaveLength(1501);
    await lose(directory, (index) => index === 0);
    const left = await allOf(directory);
    for (const [words, given] of [
      ['some|red|blue', '62'],
      ['some|blue', 'as many, but with other times'],
    ] as const) {
      const summary = await loadAll(directory, [path], reading(words));
      expect(summary).toMatchObject({ restored: 0, records: 0, failed: 1 });
      expect(summary.files[0]!.error!.message).toContain(
        `gave 61 records of the hour from 2026-11-20T00:00:00.000Z when it was stored, but gives ${given} today`,
      );
    }
    expect(await allOf(directory)).toEqual(left);
    expect(await loadAll(directory, [path], reading('some|red'))).toMatchObject({
      restored: before.length - left.length,
    });
    expect(await allOf(directory)).toEqual(before);
  });

  it('are restored load by load, each as its file was read at that time', async () => {
    const directory = new MemoryDirectory();
    const reading = (words: string): { definition: AgentDefinition } => {
      return {
        definition: definitionOf({ regex: `^(?P<time>\\S+) (?P<n>\\S+) (?P<text>(?:${words}) .*)$` }),
      };
    };
    const other = (text: string): string => text.replaceAll(' some ', ' other ');
    const path = await fileOf('app_a.log', `${lines(0, 40)}${other(lines(40, 50))}`);
    await loadAll(directory, [path], reading('some'));
    await appendFile(path, `${lines(50, 60)}${other(lines(60, 90))}`);
    await loadAll(directory, [path], reading('some|other'));
    const before = await allOf(directory);
    expect(before).toHaveLength(80);
    await lose(directory);
    const first = await loadAll(directory, [path], reading('some'));
    expect(first).toMatchObject({ restored: 40, failed: 1, exitCode: 1 });
    expect(await allOf(directory)).toEqual(before.slice(0, 40));
    expect(await loadAll(directory, [path], reading('some|other'))).toMatchObject({
      restored: 40,
      failed: 0,
    });
    expect(await allOf(directory)).toEqual(before);
  });

  it('are not looked for in a file that is stored again on demand', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', lines(0, 100));
    await loadAll(directory, [path]);
    await lose(directory);
    expect(await loadAll(directory, [path], { again: true })).toMatchObject({ restored: 0, records: 100 });
    expect(await loadAll(directory, [path])).toMatchObject({ restored: 100, records: 0 });
  });

  it('of a stream cannot be restored, as the repair says', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', lines(0, 100));
    await loadAll(directory, [path]);
    await withStore(directory, async (store) => {
      await pour(store, { input: Readable.from([Buffer.from(lines(100, 130))]) });
      await store.compact();
    });
    const before = await allOf(directory);
    expect(before).toHaveLength(130);
    expect(await lose(directory)).toMatchObject({
      lostForGood: 30,
      restorable: [{ records: 100, paths: [path] }],
    });
    expect(await loadAll(directory, [path])).toMatchObject({ restored: 100 });
    expect(await allOf(directory)).toEqual(before.slice(0, 100));
  });

  it('are restored by one of two concurrent loads', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', minutes(0, 2000));
    await loadAll(directory, [path]);
    const before = await allOf(directory);
    await lose(directory);
    const both = await withStore(directory, (store) =>
      Promise.all([load(store, [path]), load(store, [path])]),
    );
    expect(both.map(({ restored }) => restored).sort()).toEqual([0, 2000]);
    const failure = both.flatMap(({ files }) => files).find(({ error }) => error !== null);
    expect(failure?.error?.message).toContain('restored by another process, or removed');
    expect(await allOf(directory)).toEqual(before);
    expect(await loadAll(directory, [path])).toMatchObject({ known: 1 });
  });

  it('are lost or restored after a crash at any step, and can be restored afterwards', async () => {
    const path = await fileOf('app_a.log', minutes(0, 2000));
    const lost = async (): Promise<MemoryDirectory> => {
      const directory = new MemoryDirectory();
      await loadAll(directory, [path]);
      await lose(directory, (index) => index === 0);
      return directory;
    };
    const whole = (await lost()).crash('kept');
    const left = await allOf(whole);
    await loadAll(whole, [path]);
    const before = await allOf(whole);
    expect([left.length, before.length]).toEqual([560, 2000]);
    const steps = whole.mutations;
    expect(steps).toBeGreaterThan(10);
    for (let step = 1; step <= steps; step++) {
      const dying = (await lost()).crash('kept', { crashAtOperation: step, seed: step });
      await loadAll(dying, [path]).catch((error: unknown) => expect(error).toBeInstanceOf(LogstrataError));
      const after = dying.crash(step % 2 === 0 ? 'lost' : { seed: step });
      const found = await allOf(after);
      expect([left.length, before.length]).toContain(found.length);
      expect(found).toEqual(found.length === left.length ? left : before);
      await loadAll(after, [path]);
      expect(await allOf(after)).toEqual(before);
      expect(await withStore(after, (store) => store.verify())).toMatchObject({
        restorable: [],
        damages: [],
        unnamedFiles: [],
      });
    }
  });

  it('that retention has removed since are not restored', async () => {
    const directory = new MemoryDirectory();
    const path = await fileOf('app_a.log', minutes(0, 2000));
    const retention = { periodMs: 5 * dayMs, bytesMax: null, intervalMs: hourMs, graceMs: dayMs };
    const keeping = async (now: number, files: readonly string[], beyondRetention = false) => {
      const archive = await openOn(directory, () => now, undefined, { background: { threads: 0 } });
      try {
        const store = await archive.agent('app', definitionOf().schema, retention);
        const summary = await load(store, files, { now: () => now, beyondRetention });
        await archive.retireNow();
        return summary;
      } finally {
        await archive.close();
      }
    };
    await keeping(nowMs, [path]);
    const before = await allOf(directory);
    await lose(directory);
    const newer = await fileOf('app_b.log', lineOf(6 * 86_400));
    // From 2026-11-21 00:00 on, the last 560 minutes remain.
    await keeping(Date.UTC(2026, 10, 26), [newer]);
    expect(await keeping(Date.UTC(2026, 10, 26), [path])).toMatchObject({ restored: 560 });
    expect((await allOf(directory)).slice(0, 560)).toEqual(before.slice(1440));
    // Records that were loaded although expired are kept for their full period.
    const old = await fileOf('app_c.log', lineOf(-2 * 86_400));
    expect(await keeping(Date.UTC(2026, 10, 26), [old], true)).toMatchObject({ records: 1 });
    const kept = await allOf(directory);
    await lose(directory, (index) => index === 0);
    expect(await allOf(directory)).toEqual(kept.slice(1));
    expect(await keeping(Date.UTC(2026, 10, 26), [old])).toMatchObject({ restored: 1 });
    expect(await allOf(directory)).toEqual(kept);
    const newest = await fileOf('app_d.log', lineOf(12 * 86_400));
    await keeping(Date.UTC(2026, 11, 2), [newest]);
    expect((await allOf(directory)).map(({ n }) => n)).toEqual([12 * 86_400]);
  });

  it('are restored for the newest loads, as many as a manifest has room for', async () => {
    const directory = new MemoryDirectory();
    const paths = [await fileOf('app_a.log', lines(0, 10)), await fileOf('app_b.log', lines(20, 30))];
    for (const path of paths) await loadAll(directory, [path]);
    const fill = (sources: number): Promise<unknown> =>
      withStore(directory, async (store) => {
        const [checkpoint] = await store.checkpoints();
        const part = { from: null, until: checkpoint!, writtenMs: 0 };
        const session = await store.beginLoad();
        await session.append(batchFromRows(store.schema, [[1n, 1n, 'x', 'y']]), 0);
        const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
        const parts = Array.from({ length: sources }, () => part);
        await session.commit({ checkpoints: [], counters, parts });
      });
    // There is room for the second file, and none for the first.
    await fill((loadRunsMax - loadSourceRuns - 2) / loadSourceRuns);
    const before = await allOf(directory);
    const report = await lose(directory, (index) => index > 0);
    expect(report).toMatchObject({ lostForGood: 10, restorable: [{ records: 10, paths: [paths[1]] }] });
    expect(await loadAll(directory, paths)).toMatchObject({ restored: 10, known: 1 });
    expect(await allOf(directory)).toEqual(before.filter(({ n, text }) => text === 'x' || n! >= 20));
  });
});
