import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { loadRejected } from '../../../agents/load/load-rejected.js';
import type { LoadSummary } from '../../../agents/load/load-report.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { RejectedLine } from '../../../engine/store/manifest/commit.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import { answer, noExtras, openOn } from '../../engine/store/memory-archive.js';
import { batchFromRows } from '../../model/rows.js';
import { describeFile, describeSummary } from '../../../server/cli/load.js';
import {
  archiveAt,
  definitionOf,
  lineOf,
  lines,
  load,
  nowMs,
  pour,
  recordsOf,
  rejectedOf,
} from './archive.js';
import { gzip } from './compressed.js';
import { closeAtEnd, temporaryFolder } from './temporary.js';

const workers = new WorkerPool(0);
afterAll(() => workers.close());

/** The reason that the rejected lines are stored with. */
const strict = definitionOf({ regex: '^(?P<time>\\S+Z) (?P<n>\\d+) (?P<text>.*)$' });

/** A pattern that also accepts lines that begin with "at ". */
const mended = definitionOf({ regex: '^(?:at )?(?P<time>\\S+Z) (?P<n>\\d+) (?P<text>.*)$' });

function again(store: AgentStore, definition: AgentDefinition = mended): Promise<LoadSummary> {
  return loadRejected({ store, definition, timezone: 'UTC', now: () => nowMs, workers });
}

async function linesOf(store: AgentStore): Promise<RejectedLine[]> {
  const all: RejectedLine[] = [];
  for (const entry of await store.rejectedFiles())
    for await (const group of store.rejectedLines(entry)) all.push(...group);
  return all;
}

/** Lines that match no pattern, each of which takes more than a hundred bytes when stored. */
const nonsense = (count: number): string => 'x\n'.repeat(count);

describe('rejected lines without room to store them', () => {
  it('of a file that takes little space are counted and not kept, unless the agent sets how many bytes to keep', async () => {
    const folder = await temporaryFolder();
    const archive = await archiveAt(folder);
    const store = await archive.agent('app', strict.schema);
    const web = join(folder, 'app_web.log.gz');
    await writeFile(web, gzip(lines(0, 1) + nonsense(150_000) + odd(1)));
    const summary = await load(store, [web], { definition: strict });
    expect(summary).toMatchObject({ records: 1, rejected: 150_001, loaded: 1, exitCode: 0 });
    const { linesRejected, bytesRejected, counters } = await store.stats();
    expect(linesRejected).toBeGreaterThan(10_000);
    expect(bytesRejected).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(summary.notKept).toBe(150_001 - linesRejected);
    expect(summary.files[0]).toMatchObject({ rejected: 150_001, notKept: summary.notKept });
    expect(counters).toMatchObject({ records: 1, rejected: 150_001 });
    expect((await linesOf(store)).map(({ offset }) => offset)).toEqual(
      Array.from({ length: linesRejected }, (_, i) => lines(0, 1).length + 2 * i),
    );
    expect(
      describeSummary(summary, 'place', strict.fields).filter((line) => line.includes('NOT KEPT')),
    ).toEqual([
      expect.stringMatching(/^WARNING .* rejected lines were counted and NOT KEPT.*rejected\.max_bytes/),
    ]);
    expect(describeFile(summary.files[0]!)[0]).toMatch(/ of them NOT KEPT \(load [0-9a-f]{16}\)$/);
    expect(await store.verify()).toMatchObject({ damages: [] });

    const told = { ...strict, rejectedBytesMax: 100 * 1024 * 1024 };
    expect(await load(store, [web], { definition: told, again: true })).toMatchObject({ notKept: 0 });
    expect(await store.stats()).toMatchObject({ linesRejected: linesRejected + 150_001 });
  });

  it('of an agent are counted and not kept until earlier ones are removed', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', strict.schema);
    const file = async (name: string, content: string): Promise<string> => {
      const path = join(folder, name);
      await writeFile(path, content);
      return path;
    };
    const definition = { ...strict, rejectedBytesMax: 3000 };
    const web = await file('app_web.log', lines(0, 1) + odd(1) + odd(2) + nonsense(100) + odd(3));
    const db = await file('app_db.log', lines(4, 5) + odd(5));
    expect(await load(store, [web, db], { definition })).toMatchObject({ records: 2, rejected: 104 });
    const { linesRejected, bytesRejected } = await store.stats();
    expect(bytesRejected).toBeLessThanOrEqual(3000);
    expect(linesRejected).toBeGreaterThan(2);

    const summary = await again(store, { ...mended, rejectedBytesMax: 1 });
    expect(summary).toMatchObject({ records: 2, rejected: linesRejected - 2, notKept: 0 });
    expect(await store.stats()).toMatchObject({
      linesRejected: linesRejected - 2,
      counters: { records: 4, rejected: 102 },
    });
    expect(await store.verify()).toMatchObject({ damages: [], records: 4 });
    const last = await file('app_last.log', lines(6, 7) + 'y\n');
    expect(await load(store, [last], { definition })).toMatchObject({ rejected: 1, notKept: 0 });
  });

  it('of a stream are counted and not kept', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', strict.schema);
    const input = Readable.from([Buffer.from(lines(0, 1) + nonsense(100))]);
    const summary = await pour(store, { input, definition: { ...strict, rejectedBytesMax: 1000 } });
    const { linesRejected, bytesRejected, counters } = await store.stats();
    expect(bytesRejected).toBeLessThanOrEqual(1000);
    expect(linesRejected).toBeGreaterThan(2);
    expect(summary).toMatchObject({ records: 1, rejected: 100, notKept: 100 - linesRejected });
    expect(counters).toMatchObject({ records: 1, rejected: 100 });
    expect(await store.verify()).toMatchObject({ damages: [] });
  });
});

const odd = (n: number): string => `at ${lineOf(n)}`;

describe('rejected lines', () => {
  it('stay unchanged if the load is stopped between slow lines', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', strict.schema);
    const web = join(folder, 'app_web.log');
    await writeFile(web, lines(0, 1) + `${'b'.repeat(2500)}\n`.repeat(600));
    await load(store, [web], { definition: strict });
    const large = definitionOf({ regex: `^(?P<text>${'.{0,1000}'.repeat(20)})$` });
    const pool = new WorkerPool(1);
    closeAtEnd(() => pool.close());
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 1000);
    const summary = await loadRejected({
      store,
      definition: large,
      timezone: 'UTC',
      now: () => nowMs,
      workers: pool,
      signal: controller.signal,
    });
    expect(summary).toMatchObject({ loaded: 0, failed: 0, stopped: { code: 'cancelled' } });
    expect(await store.stats()).toMatchObject({ linesRejected: 600, counters: { rejected: 600 } });
  });

  it('become records once the pattern matches them; the others stay with reason and place', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', mended.schema);
    const web = join(folder, 'app_web.log');
    const db = join(folder, 'app_db.log.1');
    await writeFile(web, lines(0, 3) + odd(3) + 'nonsense\n' + lines(4, 6) + odd(6));
    await writeFile(db, odd(7) + lines(8, 9));
    await load(store, [web, db], { definition: strict });
    expect((await store.stats()).counters).toMatchObject({ records: 6, rejected: 4 });

    const summary = await again(store);
    expect(summary).toMatchObject({ records: 3, rejected: 1, loaded: 2, failed: 0, exitCode: 0 });
    const records = (await recordsOf(store)).sort((a, b) => a.n! - b.n!);
    expect(records.map(({ n, host }) => `${n} ${host}`)).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => `${n} ${n < 7 ? 'web' : 'db'}`),
    );
    const stats = await store.stats();
    expect(stats).toMatchObject({ linesRejected: 1, counters: { records: 9, rejected: 1 } });
    const kept = await linesOf(store);
    expect(kept.map(({ line, ...place }) => ({ ...place, line: Buffer.from(line).toString() }))).toEqual([
      {
        reason: 'does not match the pattern',
        file: web,
        offset: (lines(0, 3) + odd(3)).length,
        line: 'nonsense',
      },
    ]);
    expect(await store.verify()).toMatchObject({ damages: [], records: 9 });

    const before = await store.stats();
    expect(await again(store)).toMatchObject({ records: 0, rejected: 1, loaded: 0, exitCode: 1 });
    expect(await store.stats()).toEqual(before);
  });

  it('of a stream are taken from the hot file, also if it has nothing else', async () => {
    const folder = await temporaryFolder();
    const archive = await archiveAt(folder);
    const store = await archive.agent('app', mended.schema);
    const line = Buffer.from(odd(1).trimEnd());
    const rejected = [{ reason: 'does not match the pattern', file: '-', offset: 7, line }];
    await store.append(batchFromRows(store.schema, []), { ...noExtras, rejected }, 'live');
    expect(await again(store)).toMatchObject({ records: 1, rejected: 0, loaded: 1 });
    expect(await recordsOf(store)).toMatchObject([{ n: 1, host: null }]);
    expect(await store.rejectedFiles()).toEqual([]);
    await archive.close();
    expect(await rejectedOf(folder)).toEqual([]);
  });

  it('that are parts of a line, or became blank, stay unchanged', async () => {
    const store = await (await archiveAt(await temporaryFolder())).agent('app', mended.schema);
    const rest =
      'it continues a line whose beginning was already stored when the file ended in the middle of it';
    const beginning = 'the line has 2000000 bytes, more than 1048576; its first 1048576 are kept';
    const part = { file: 'app_a.log', offset: 0, line: Buffer.from(odd(1).trimEnd()) };
    const rejected = [
      { ...part, reason: rest },
      { ...part, reason: beginning },
      { ...part, reason: 'is no JSON', line: Buffer.from('') },
      { ...part, reason: 'does not match the pattern', line: Buffer.from([0x61, 0xff]) },
      { ...part, reason: 'does not match the pattern', line: Buffer.from(odd(2).trimEnd()) },
    ];
    await store.append(batchFromRows(store.schema, []), { ...noExtras, rejected }, 'live');
    expect(await again(store)).toMatchObject({ records: 1, rejected: 4 });
    const kept = await linesOf(store);
    expect(new Set(kept.map(({ reason }) => reason))).toEqual(
      new Set([rest, beginning, 'is no JSON', 'does not match the pattern']),
    );
    expect(kept.map(({ line }) => [...line])).toContainEqual([0x61, 0xff]);
  });

  it('that do not exist give a summary without files', async () => {
    const store = await (await archiveAt(await temporaryFolder())).agent('app', mended.schema);
    expect(await again(store)).toMatchObject({ files: [], records: 0, exitCode: 1, stopped: null });
  });

  it('in a damaged file fail with its name and place, and the other files continue', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', mended.schema);
    for (const n of [1, 2]) {
      await writeFile(join(folder, `app_${n}.log`), lineOf(n) + odd(n + 10));
      await load(store, [join(folder, `app_${n}.log`)], { definition: strict });
    }
    const [first] = await store.rejectedFiles();
    await writeFile(join(folder, 'app', first!.file), 'x'.repeat(first!.bytes));
    const summary = await again(store);
    expect(summary).toMatchObject({ records: 1, loaded: 1, failed: 1, exitCode: 1 });
    expect(summary.files[0]!.error).toMatchObject({ code: 'damaged' });
    expect(summary.files[0]!.error!.message).toContain(first!.file);
  });

  it('that another load has stored at the same time are not stored twice', async () => {
    const folder = await temporaryFolder();
    const store = await (await archiveAt(folder)).agent('app', mended.schema);
    await writeFile(join(folder, 'app_a.log'), lineOf(1) + odd(2));
    await load(store, [join(folder, 'app_a.log')], { definition: strict });
    const both = await Promise.all([again(store), again(store)]);
    expect(both.map(({ records }) => records).sort()).toEqual([0, 1]);
    expect(both.flatMap(({ files }) => files.flatMap(({ error }) => error?.code ?? []))).toEqual([
      'conflict',
    ]);
    expect((await recordsOf(store)).map(({ n }) => n)).toEqual([1, 2]);
  });

  it('of any kind in any order are stored once or kept, like in a naive model', async () => {
    const kinds = fc.array(
      fc.record({ kind: fc.constantFrom('whole', 'odd', 'bad'), file: fc.constantFrom('a', 'b', 'c') }),
      { minLength: 1, maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(kinds, fc.integer({ min: 1, max: 9 }), async (given, batch) => {
        const archive = await openOn(new MemoryDirectory(), () => nowMs);
        const store = await archive.agent('app', mended.schema);
        const rejected = given.flatMap(({ kind, file }, n) => {
          const text = kind === 'bad' ? `bad ${n}` : kind === 'odd' ? odd(n) : lineOf(n);
          return [{ reason: 'old', file: `app_${file}.log`, offset: n, line: Buffer.from(text.trimEnd()) }];
        });
        for (let i = 0; i < rejected.length; i += batch) {
          const extras = { ...noExtras, rejected: rejected.slice(i, i + batch) };
          await store.append(batchFromRows(store.schema, []), extras, 'live');
          if (i % 2 === 0) await store.compact();
        }
        await again(store);
        const stored = (await recordsOf(store)).map(({ n, host }) => `${n} ${host}`);
        const wanted = given.flatMap(({ kind, file }, n) => (kind === 'bad' ? [] : [`${n} ${file}`]));
        expect(stored).toEqual(wanted);
        const kept = (await linesOf(store)).map(({ offset }) => offset).sort((a, b) => a - b);
        expect(kept).toEqual(given.flatMap(({ kind }, n) => (kind === 'bad' ? [n] : [])));
        expect((await store.stats()).counters).toMatchObject({
          rejected: kept.length,
          records: wanted.length,
        });
        await archive.close();
      }),
      { numRuns: caseCount(20, 500) },
    );
  });
});

describe('a crash while rejected lines are loaded', () => {
  async function live(directory: MemoryDirectory): Promise<void> {
    const archive = await openOn(directory, () => nowMs);
    const store = await archive.agent('app', mended.schema);
    const rejected = [odd(1), 'bad', odd(2)].map((text, offset) => ({
      reason: 'old',
      file: 'app_web.log',
      offset,
      line: Buffer.from(text.trimEnd()),
    }));
    await store.append(batchFromRows(store.schema, []), { ...noExtras, rejected }, 'live');
    const { stopped, files } = await again(store);
    const error = stopped ?? files.find((file) => file.error !== null)?.error;
    if (error !== undefined && error !== null) throw error;
    await archive.close();
  }

  it('at any step stores each line once or not at all, and loses none', async () => {
    const whole = new MemoryDirectory();
    await live(whole);
    const steps = whole.mutations;
    expect(steps).toBeGreaterThan(30);
    const seen = new Set<string>();
    for (let step = 1; step <= steps; step++) {
      const directory = new MemoryDirectory({ crashAtOperation: step, seed: step });
      await live(directory).catch(() => undefined);
      for (const mode of ['lost', 'kept', { seed: step }] as const) {
        const archive = await openOn(directory.crash(mode), () => nowMs);
        const store = await archive.agent('app', mended.schema);
        const records = (await answer(store)).split('\n').length - 1;
        expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [], records });
        const kept = (await linesOf(store)).length;
        const { counters } = await store.stats();
        seen.add(`${records} ${kept}`);
        expect(counters).toMatchObject({ records, rejected: kept });
        if (kept > 0) await again(store);
        if (records + kept > 0) expect((await answer(store)).split('\n')).toHaveLength(3);
        await archive.close();
      }
    }
    // Only three states may occur: nothing loaded, all lines rejected, or two stored.
    expect([...seen].sort()).toEqual(['0 0', '0 3', '2 1']);
  });
});
