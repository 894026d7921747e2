import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { DamageError, LogstrataError } from '../../engine/core/errors.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query, ScanStats } from '../../engine/scan/query.js';
import { JobQueue } from '../../engine/workers/job-queue.js';
import { linesTask, matchesTask } from '../../engine/scan/row-group-task.js';
import { makeSchema } from '../../engine/core/schema.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { Task } from '../../engine/workers/task.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import { datasets, queries } from '../model/arbitraries.js';
import type { Dataset } from '../model/dataset.js';
import { numbered, schema } from './numbered.js';
import { storeSnapshot, type StoredLayout, type StoredSnapshot } from './stored-snapshot.js';

const runs = caseCount(30, 2000);

const folder = mkdtempSync(join(tmpdir(), 'logstrata-scan-'));
/** The last pool runs all reads on the calling thread, although it has threads. */
const pools = [
  ...[0, 1, 8].map((threads) => new WorkerPool(threads)),
  new WorkerPool(2, undefined, Number.MAX_VALUE),
];
const [inline, single, several] = pools as [WorkerPool, WorkerPool, WorkerPool, WorkerPool];
let directory: Directory;
let files = 0;

beforeAll(async () => {
  directory = await openRealDirectory(folder);
});
afterAll(async () => {
  for (const pool of pools) await pool.close();
  rmSync(folder, { recursive: true });
});

function store(
  dataset: Dataset,
  layout: Partial<StoredLayout> = {},
  columns?: BufferPool,
): Promise<StoredSnapshot> {
  const whole: StoredLayout = {
    segments: 2,
    stretch: 1000,
    rowGroupRows: 100,
    hotRecords: 0,
    codec: 'lz4',
    ...layout,
  };
  return storeSnapshot(directory, `set-${files++}`, dataset, whole, columns);
}

/** The jobs of a task that queries have given to threads since the last `clear`. */
function spiedJobs<Job>(task: Task<Job, unknown>) {
  const run = vi.spyOn(JobQueue.prototype, 'run');
  return {
    jobs: (): Job[] => run.mock.calls.filter(([of]) => of === (task as unknown)).map(([, job]) => job as Job),
    clear: () => run.mockClear(),
    restore: () => run.mockRestore(),
  };
}

async function ask(
  snapshot: StoredSnapshot,
  query: Query,
  workers: WorkerPool,
): Promise<{ text: string; stats: ScanStats }> {
  const { lines, stats } = executeScan(snapshot, query, { workers });
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece);
  return { text: Buffer.concat(pieces).toString('utf8'), stats };
}

const like = (value: string) => ({ kind: 'string', field: 2, op: 'like', value }) as const;
const level = (value: string) => ({ kind: 'string', field: 1, op: 'exact', value }) as const;

describe('a scan with threads', () => {
  it('answers like the model, byte for byte, with 0, 1 and 8 of them, sealed and hot', async () => {
    const layouts: fc.Arbitrary<StoredLayout> = fc.record({
      segments: fc.integer({ min: 1, max: 3 }),
      stretch: fc.constantFrom(1, 7, 1000),
      rowGroupRows: fc.constantFrom(3, 8, 20, 64),
      hotRecords: fc.constantFrom(0, 10, 1000),
      codec: fc.constantFrom('lz4' as const, 'zstd' as const),
    });
    const cases = datasets(120).chain((dataset) =>
      fc.tuple(fc.constant(dataset), layouts, fc.array(queries(dataset), { minLength: 1, maxLength: 6 })),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([dataset, layout, asked]) => {
        for (const workers of pools) {
          // Stored again, so that each number of threads starts without decoded columns.
          const snapshot = await store(dataset, layout);
          for (const query of asked)
            expect((await ask(snapshot, query, workers)).text).toBe(answerOf(dataset, query));
          await vacant(snapshot, asked.length);
        }
      }),
      { numRuns: runs },
    );
  }, 600_000);

  it('asks the same gram filters as one thread, and reads as few pieces', async () => {
    const dataset = numbered(6000);
    const query = { limit: 10, predicates: [like(`is no. 1234 done`)] };
    const alone = await ask(await store(dataset), query, inline);
    expect(alone.text).toBe(answerOf(dataset, query));
    expect(alone.stats.rowGroupsPrunedByGram).toBeGreaterThan(50);
    for (const workers of [single, several]) {
      const { text, stats } = await ask(await store(dataset), query, workers);
      expect(text).toBe(alone.text);
      expect(stats.rowGroupsPrunedByGram).toBe(alone.stats.rowGroupsPrunedByGram);
      expect(stats.rowGroupsScanned).toBe(alone.stats.rowGroupsScanned);
      expect(stats.columnsDecoded).toBe(alone.stats.columnsDecoded);
      expect(stats.gramPiecesRead).toBe(alone.stats.gramPiecesRead);
      // Each thread reads the summary of a segment separately.
      expect(stats.bytesRead).toBeLessThan(alone.stats.bytesRead + 32 * 1024);
    }
  });

  it.each([
    ['a short column in memory itself', 100, 0],
    ['a long column in memory on a thread, also as the first of a query', 12_000, 1],
  ])('searches %s', async (_, padding, jobs) => {
    const short = numbered(1000);
    const records = short.records.map(({ position, values: [time, level, message] }) => ({
      position,
      values: [time!, level!, `${message as string} ${'x'.repeat(padding)}`],
    }));
    const dataset = { schema: short.schema, records };
    const columns = new BufferPool(1 << 27);
    const snapshot = await store(dataset, { segments: 1, rowGroupRows: 1000 }, columns);
    const query = (n: number): Query => ({ limit: 10, predicates: [like(`is no. ${n} done`)] });
    for (const n of [7, 70, 700]) await ask(snapshot, query(n), several);
    const spied = spiedJobs(matchesTask);
    try {
      const { text, stats } = await ask(snapshot, query(123), several);
      expect(text).toBe(answerOf(dataset, query(123)));
      expect(stats).toMatchObject({ rowGroupsScanned: 1, rowsScanned: 1000 });
      expect(spied.jobs()).toHaveLength(jobs);
    } finally {
      spied.restore();
    }
    columns.close();
  });

  it('searches one row group if that one has the answer, and otherwise at most twice as many as needed', async () => {
    const dataset = numbered(6000);
    const newest = { limit: 50, predicates: [like('request')] };
    const one = await ask(await store(dataset), newest, several);
    expect(one.text).toBe(answerOf(dataset, newest));
    expect(one.stats).toMatchObject({ rowGroupsScanned: 1, columnsDecoded: 3 });
    const far = { limit: 10, predicates: [level('error')] };
    const ten = await ask(await store(dataset), far, several);
    expect(ten.text).toBe(answerOf(dataset, far));
    expect(ten.stats.rowGroupsScanned).toBeGreaterThanOrEqual(10);
    expect(ten.stats.rowGroupsScanned).toBeLessThanOrEqual(21);
  });
});

describe('a long search with threads', () => {
  it('is run by them, with the answer of one thread, once more than a little is in memory', async () => {
    const { records } = numbered(20_000);
    const special = ['\u212aelvin', 'kelvin', 'Ünïcode', 'ſ', ''];
    const dataset: Dataset = {
      schema,
      records: records.map(({ position, values }, i) => {
        const text = `${values[2] as string} ${special[i % 5]!} ${'-'.repeat(1000)} end ${i % 7}`;
        return { position, values: [values[0]!, values[1]!, i % 11 === 3 ? null : text] };
      }),
    };
    const snapshot = await store(dataset, { segments: 1, rowGroupRows: 2000 });
    const rare = { field: 2, kind: 'string' } as const;
    const asked: Query[] = [
      { limit: 6000, predicates: [like('KELVIN')] },
      { limit: 3000, predicates: [like('ünïcode')] },
      { limit: 3000, predicates: [{ ...rare, op: 'suffix', value: 'END 5' }] },
      { limit: 3000, predicates: [{ ...rare, op: 'prefix', value: 'REQUEST 2' }, like('done s ')] },
      { limit: 10, after: { partition: 482136, ordinal: 300 }, predicates: [like('nowhere at all')] },
    ];
    const search = spiedJobs(matchesTask);
    for (const workers of pools) {
      for (const query of asked) {
        search.clear();
        expect((await ask(snapshot, query, workers)).text === answerOf(dataset, query)).toBe(true);
        if (workers === inline) expect(search.jobs()).toEqual([]);
        else if (query.limit > 10) expect(search.jobs().length).toBeGreaterThan(1);
      }
    }
    search.restore();
    await vacant(snapshot, asked.length * pools.length);
  });
});

describe('many row groups in memory', () => {
  const fields = makeSchema([
    { name: 'time', type: 'time' },
    { name: 'status', type: 'int' },
    { name: 'level', type: 'string' },
    { name: 'share', type: 'float' },
    { name: 'message', type: 'string' },
  ]);
  const dataset: Dataset = {
    schema: fields,
    records: Array.from({ length: 20_000 }, (_, i) => {
      // Many matches come first, from either end; threads then search the rest, which has fewer.
      const first = Math.min(i, 19_999 - i) < 6000;
      return {
        position: { partition: 482136 + Math.floor(i / 7000), ordinal: (i % 7000) + 1 },
        values: [
          BigInt(1_735_689_600_000 + i),
          i % 13 === 5 ? null : first ? BigInt(2 * (i & 1)) : BigInt((i * 7) % 6),
          i % 9 === 4 ? null : (first ? i % 4 < 2 : i % 100 === 7) ? 'error' : `info ${first ? 1 : i % 3}`,
          i % 17 === 2 ? null : ((i * 2654435761) % 4294967296) / 4294967296 / (first ? 64 : 1),
          `request ${i}`,
        ],
      };
    }),
  };
  const status = (op: 'eq' | 'ne' | 'gte', value: bigint) => ({ kind: 'int', field: 1, op, value }) as const;
  const start = (value: string) => ({ kind: 'string', field: 2, op: 'prefix', value }) as const;
  const small = { kind: 'float', field: 3, op: 'lt', value: 0.02 } as const;
  const since = { kind: 'int', field: 0, op: 'gte', value: 1_735_689_603_210n } as const;
  const error = { kind: 'string', field: 2, op: 'exact', value: 'error' } as const;
  const whole = { limit: 100_000, after: { partition: 0, ordinal: 0 } };
  const asked: Query[] = [
    { ...whole, predicates: [status('eq', 2n), start('INFO 1'), small] },
    { ...whole, predicates: [status('ne', 2n), start('info')] },
    { limit: 9000, predicates: [start('info'), since, status('gte', 1n), status('ne', 4n)] },
    { limit: 9000, predicates: [error] },
    { limit: 9000, before: { partition: 482138, ordinal: 5077 }, predicates: [small, status('eq', 0n)] },
    { limit: 9000, predicates: [small, { kind: 'string', field: 4, op: 'suffix', value: '1' }] },
  ];

  it('have the same answer and statistics with any number of threads', async () => {
    const memory = sharedMemory();
    const columns = new BufferPool(1 << 28, memory);
    const layout = { segments: 2, stretch: 900, rowGroupRows: 500, hotRecords: 700 };
    const snapshot = await store(dataset, layout, columns);
    const answers = asked.map((query) => answerOf(dataset, query));
    for (const query of asked) await ask(snapshot, query, inline);
    const heldBytes = memory.takenBytes - columns.bytes;
    for (const workers of pools) {
      for (const [i, query] of asked.entries()) {
        const alone = await ask(snapshot, query, inline);
        const { text, stats } = await ask(snapshot, query, workers);
        expect(text === answers[i]).toBe(true);
        expect(alone.text === text).toBe(true);
        expect(stats.columnsDecoded).toBe(0);
        if (query.limit === whole.limit) {
          expect(stats.rowGroupsScanned).toBe(alone.stats.rowGroupsScanned);
          expect(stats.rowsScanned).toBe(alone.stats.rowsScanned);
        }
      }
    }
    await vacant(snapshot, asked.length * (1 + 2 * pools.length));
    expect(columns.pinnedBytes).toBe(0);
    expect(memory.takenBytes - columns.bytes).toBe(heldBytes);
    columns.close();
  });

  it('are searched by the calling thread if there are few matches, until it has compared many bytes', async () => {
    // Each row group has a string of a megabyte in its dictionary, and five rows that match.
    const texts = ['a', 'b'.repeat(1_000_000)];
    const narrow = spiedJobs(matchesTask);
    const columns = new BufferPool(1 << 28, sharedMemory());
    for (const rowGroups of [40, 150]) {
      const records = Array.from({ length: 6 * rowGroups }, (_, i) => ({
        position: { partition: 482136, ordinal: i + 1 },
        values: [BigInt(1_735_689_600_000 + i), null, texts[i % 6 === 3 ? 1 : 0]!, null, null],
      }));
      const layout = { segments: 3, stretch: 60, rowGroupRows: 6, hotRecords: 0 };
      const stored = { schema: fields, records };
      const snapshot = await store(stored, layout, columns);
      const query: Query = { ...whole, predicates: [start('a')] };
      for (let i = 0; i < 2; i++) {
        narrow.clear();
        expect((await ask(snapshot, query, several)).text).toBe(answerOf(stored, query));
      }
      expect(narrow.jobs().length > 0).toBe(rowGroups === 150);
    }
    narrow.restore();
    columns.close();
  });
});

describe('a long answer with threads', () => {
  const everything = { limit: 100_000, after: { partition: 0, ordinal: 0 }, predicates: [] };

  it('has the same bytes with 0, 1 and 8 of them, in pieces of whole lines', async () => {
    const dataset = numbered(45_000);
    const asked: Query[] = [
      everything,
      { limit: 30_000, predicates: [] },
      { limit: 44_000, after: { partition: 482136, ordinal: 777 }, predicates: [like('no. 1')] },
      { limit: 100_000, predicates: [{ kind: 'string', field: 2, op: 'like', value: '0' }] },
    ];
    const memory = sharedMemory();
    const columns = new BufferPool(1 << 28, memory);
    const heldBytes = (): number => memory.takenBytes - columns.bytes;
    for (const workers of pools) {
      const layout = { segments: 2, stretch: 3000, rowGroupRows: 22_000, hotRecords: 18_000 };
      const snapshot = await store(dataset, layout, columns);
      const takenBytes = heldBytes();
      for (const query of asked) {
        for (const pieceBytes of [undefined, 5000]) {
          const pieces: Uint8Array[] = [];
          for await (const piece of executeScan(snapshot, query, { workers, pieceBytes }).lines) {
            expect(piece.at(-1)).toBe(10);
            expect(piece.length).toBeLessThanOrEqual(pieceBytes ?? 256 * 1024);
            pieces.push(piece);
          }
          expect(Buffer.concat(pieces).toString('utf8') === answerOf(dataset, query)).toBe(true);
        }
      }
      await vacant(snapshot, asked.length * 2);
      // Neither sealed rows nor hot ones, whose columns are elsewhere, leave any memory allocated.
      expect(heldBytes()).toBe(takenBytes);
    }
    columns.close();
  });

  it('writes few matches of each of many row groups on the calling thread', async () => {
    const dataset = numbered(30_000);
    const snapshot = await store(dataset, { segments: 1, rowGroupRows: 2000 }, new BufferPool(1 << 28));
    // 200 rows of each of the 15 row groups.
    const tenth = { limit: 10_000, predicates: [like('7 done')] };
    const write = spiedJobs(linesTask);
    for (let i = 0; i < 2; i++) {
      write.clear();
      const { text, stats } = await ask(snapshot, tenth, single);
      expect(text === answerOf(dataset, tenth)).toBe(true);
      expect(stats.rowsReturned).toBe(3000);
    }
    // Handing over so few rows of each would take longer than writing them.
    expect(write.jobs()).toEqual([]);
    write.restore();
    await vacant(snapshot, 2);
  });

  it('is written ahead of a slow client by a limited number of pieces', async () => {
    const snapshot = await store(numbered(44_000), { segments: 1, rowGroupRows: 22_000 });
    const { lines, stats } = executeScan(snapshot, everything, { workers: single, pieceBytes: 2000 });
    const pieces = lines[Symbol.asyncIterator]();
    await pieces.next();
    const written = await settled(() => stats.rowsReturned);
    // Two batches of two jobs, of a megabyte each.
    expect(written).toBeLessThan(40_000);
    await pieces.return?.();
    await vacant(snapshot, 1);
  });
});

describe('a scan with threads that fails', () => {
  const everything = { limit: 10_000, after: { partition: 0, ordinal: 0 }, predicates: [level('error')] };

  it('reports damage like one thread, and answers queries that do not need the damaged part', async () => {
    const dataset = numbered(3000);
    const snapshot = await store(dataset, { segments: 1 });
    const { footer } = await snapshot.segments[0]!.footer();
    const { offset } = footer.rowGroups[7]!.chunks[2]!;
    const path = join(folder, snapshot.segments[0]!.path);
    const bytes = readFileSync(path);
    bytes[offset + 20]! ^= 1;
    writeFileSync(path, bytes);
    const failures: unknown[] = [];
    for (const workers of pools) {
      failures.push(await ask(snapshot, everything, workers).catch((error: unknown) => error));
      const newest = { limit: 5, predicates: [level('error')] };
      expect((await ask(snapshot, newest, workers)).text).toBe(answerOf(dataset, newest));
    }
    for (const failure of failures) {
      expect(failure).toBeInstanceOf(DamageError);
      expect(failure).toMatchObject({ rowGroup: 7, column: 'level', path: snapshot.segments[0]!.path });
    }
    await vacant(snapshot, 2 * pools.length);
  });

  it('distinguishes a missing file from a damaged one', async () => {
    const snapshot = await store(numbered(300));
    await ask(snapshot, { limit: 1, predicates: [] }, inline);
    rmSync(join(folder, snapshot.segments[0]!.path));
    for (const workers of pools)
      await expect(ask(snapshot, everything, workers)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('ends when its signal is aborted, and releases the snapshot once nothing reads it', async () => {
    for (const workers of pools) {
      const snapshot = await store(numbered(6000));
      const abort = new AbortController();
      const settings = { workers, signal: abort.signal, pieceBytes: 200 };
      const pieces = executeScan(snapshot, everything, settings).lines[Symbol.asyncIterator]();
      await pieces.next();
      const next = pieces.next();
      abort.abort(new LogstrataError('timeout', 'too long'));
      await next.catch(() => undefined);
      await expect(pieces.next()).rejects.toMatchObject({ code: 'timeout' });
      await vacant(snapshot, 1);
    }
  });

  it('releases the snapshot when it is ended early', async () => {
    for (const workers of pools) {
      const snapshot = await store(numbered(6000));
      const settings = { workers, pieceBytes: 200 };
      let count = 0;
      for await (const piece of executeScan(snapshot, everything, settings).lines) {
        expect(piece.length).toBeGreaterThan(0);
        if (++count === 10) break;
      }
      await vacant(snapshot, 1);
    }
  });
});

/** Waits until the number no longer changes. */
async function settled(number: () => number): Promise<number> {
  let before = -1;
  while (before !== number()) {
    before = number();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return before;
}

/** Resolves when every scan of the snapshot has released it, which work that was started ahead may delay a little. */
async function vacant(snapshot: StoredSnapshot, scans: number): Promise<void> {
  await expect.poll(() => snapshot.released()).toBe(scans);
}
