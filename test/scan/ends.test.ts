import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LogstrataError } from '../../engine/core/errors.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import type { RowGroup } from '../../engine/store/reading/snapshot.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { JobQueue } from '../../engine/workers/job-queue.js';
import type { Task } from '../../engine/workers/task.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

/** A pool that counts the jobs it is given. */
class CountingPool extends WorkerPool {
  jobs = 0;

  override announce(queue: JobQueue): void {
    this.jobs++;
    super.announce(queue);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'logstrata-ends-'));
const columns = new BufferPool(1 << 28);
let directory: Directory;
let many: { dataset: Dataset; snapshot: StoredSnapshot };
let large: { dataset: Dataset; snapshot: StoredSnapshot };
/** The maximum bytes of columns that were held when a snapshot was released. */
let heldBytesMax = 0;

async function stored(
  name: string,
  rows: number,
  rowGroupRows: number,
): Promise<{ dataset: Dataset; snapshot: StoredSnapshot }> {
  const dataset = numbered(rows);
  const layout = { segments: 1, stretch: rows, rowGroupRows, hotRecords: 0, codec: 'lz4' } as const;
  const snapshot = await storeSnapshot(directory, name, dataset, layout, columns);
  const release = (): void => {
    heldBytesMax = Math.max(heldBytesMax, columns.pinnedBytes);
    snapshot.release();
  };
  return { dataset, snapshot: { ...snapshot, release } };
}

beforeAll(async () => {
  directory = await openRealDirectory(folder);
  many = await stored('many', 6000, 100);
  large = await stored('large', 44_000, 22_000);
});
afterAll(() => {
  columns.close();
  rmSync(folder, { recursive: true });
});

const after = { partition: 0, ordinal: 0 };
const like = (value: string) => ({ kind: 'string', field: 2, op: 'like', value }) as const;
const level = (value: string) => ({ kind: 'string', field: 1, op: 'exact', value }) as const;
const everything: Query = { limit: 100_000, after, predicates: [] };

async function textOf(lines: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

/** Resolves when that many scans have released the snapshot, which they do when they hold none of its columns any more. */
async function released(snapshot: StoredSnapshot, scans: number): Promise<void> {
  // A thread that is still starting answers late on a busy machine.
  await expect.poll(() => snapshot.released()).toBe(scans);
  expect([heldBytesMax, columns.pinnedBytes]).toEqual([0, 0]);
}

/** Calls `use` with a pool of threads, and closes it afterwards. */
async function withPool<Pool extends WorkerPool>(
  pool: Pool,
  use: (pool: Pool) => Promise<void>,
): Promise<void> {
  try {
    await use(pool);
  } finally {
    await pool.close();
  }
}

/** The snapshot with row groups that report when they are opened. */
function watched(snapshot: StoredSnapshot, onOpen: (rowGroup: RowGroup) => void): StoredSnapshot {
  const known = new Map<RowGroup, RowGroup>();
  const watch = (rowGroup: RowGroup): RowGroup => ({
    ...rowGroup,
    opened: (threads) => {
      onOpen(rowGroup);
      return rowGroup.opened(threads);
    },
    open: (threads) => {
      onOpen(rowGroup);
      return rowGroup.open(threads);
    },
  });
  const runs = [...snapshot.runs].map((run) => {
    const rowGroup = known.get(run.rowGroup) ?? watch(run.rowGroup);
    known.set(run.rowGroup, rowGroup);
    return { ...run, rowGroup };
  });
  return { ...snapshot, runs };
}

describe.each([0, 1, 3])('a scan with %d threads that is aborted', (threads) => {
  const scans: [what: string, query: Query][] = [
    ['searches dictionaries', { limit: 10_000, after, predicates: [level('error')] }],
    ['asks gram filters', { limit: 10_000, after, predicates: [like('is no. 5999 done')] }],
    ['reads strings from the newest row group on', { limit: 5000, predicates: [like('1'), like('0')] }],
    ['returns all rows', everything],
  ];

  it.each(scans)(
    'while it %s opens no further row group, starts no further job and releases the snapshot',
    async (_, query) => {
      await withPool(new CountingPool(threads), async (workers) => {
        for (const last of [1, 4, 17]) {
          columns.evict('');
          const abort = new AbortController();
          const opened = new Set<RowGroup>();
          let jobs = 0;
          const before = many.snapshot.released();
          const snapshot = watched(many.snapshot, (rowGroup) => {
            opened.add(rowGroup);
            if (opened.size < last || abort.signal.aborted) return;
            jobs = workers.jobs;
            abort.abort(new LogstrataError('timeout', 'the time is over'));
          });
          const { lines } = executeScan(snapshot, query, { workers, signal: abort.signal });
          await expect(textOf(lines)).rejects.toMatchObject({ code: 'timeout' });
          await released(many.snapshot, before + 1);
          expect(opened.size).toBe(last);
          expect(workers.jobs).toBe(jobs);
        }
        const whole = executeScan(many.snapshot, query, { workers });
        expect((await textOf(whole.lines)) === answerOf(many.dataset, query)).toBe(true);
      });
    },
  );

  it('while its caller pauses holds no column, and releases the snapshot', async () => {
    await withPool(new CountingPool(threads), async (workers) => {
      // Short answers have one piece, after which nothing is requested any more.
      for (const query of [
        { limit: 5, predicates: [] },
        { limit: 300, after, predicates: [like('1')] },
      ]) {
        const before = many.snapshot.released();
        const abort = new AbortController();
        const { lines } = executeScan(many.snapshot, query, { workers, signal: abort.signal });
        const pieces = lines[Symbol.asyncIterator]();
        const { value } = (await pieces.next()) as IteratorYieldResult<Uint8Array>;
        expect(Buffer.from(value).toString('utf8')).toBe(answerOf(many.dataset, query));
        expect(columns.pinnedBytes).toBe(0);
        abort.abort();
        await released(many.snapshot, before + 1);
        await expect(pieces.next()).rejects.toMatchObject({ code: 'cancelled' });
        expect(many.snapshot.released()).toBe(before + 1);
      }
    });
  });

  it('while the next pieces are made ahead of its caller releases the snapshot once these are done', async () => {
    await withPool(new CountingPool(threads), async (workers) => {
      for (const turns of [0, 1, 5]) {
        columns.evict('');
        const before = large.snapshot.released();
        const abort = new AbortController();
        const asked = { workers, signal: abort.signal, pieceBytes: 100_000 };
        const pieces = executeScan(large.snapshot, everything, asked).lines[Symbol.asyncIterator]();
        await pieces.next();
        for (let turn = 0; turn < turns; turn++) await setImmediate();
        abort.abort();
        const { jobs } = workers;
        await released(large.snapshot, before + 1);
        expect(workers.jobs).toBe(jobs);
      }
    });
  });

  it('while it writes a long answer starts no further job, and returns the memory that it lent', async () => {
    await withPool(new CountingPool(threads), async (workers) => {
      const memory = sharedMemory();
      const asked = { workers, pieceBytes: 5000 };
      expect((await textOf(executeScan(large.snapshot, everything, asked).lines)).length).toBeGreaterThan(
        4_000_000,
      );
      const before = large.snapshot.released();
      const lentBytes = memory.takenBytes - columns.bytes;
      const abort = new AbortController();
      const { lines, stats } = executeScan(large.snapshot, everything, { ...asked, signal: abort.signal });
      const pieces = lines[Symbol.asyncIterator]();
      await pieces.next();
      abort.abort();
      const { jobs } = workers;
      const rest = textOf({ [Symbol.asyncIterator]: () => pieces });
      await expect(rest).rejects.toMatchObject({ code: 'cancelled' });
      await released(large.snapshot, before + 1);
      expect(workers.jobs).toBe(jobs);
      expect(stats.rowsReturned).toBeLessThan(44_000);
      expect(memory.takenBytes - columns.bytes).toBe(lentBytes);
    });
  });
});

/** A pool whose thread ends when it is given another job, after that many more jobs. */
const poison: Task<{ readonly jobs: number }, null> = {
  module: pathToFileURL(join(folder, 'poison.mjs')),
  work: () => ({ result: null, transfer: [] }),
};
writeFileSync(
  join(folder, 'poison.mjs'),
  `import { parentPort } from 'node:worker_threads';
export function work({ jobs }) {
  let left = jobs;
  parentPort.on('message', () => {
    if (left-- === 0) process.exit(3);
  });
  return { result: null, transfer: [] };
}
`,
);

describe.each([1, 2])('a scan with %d threads, one of which ends', (threads) => {
  /** Ends a thread at its first job, at its second and so on, until the scan no longer needs that many. Returns how often. */
  async function lose(
    { dataset, snapshot }: { dataset: Dataset; snapshot: StoredSnapshot },
    query: Query,
  ): Promise<number> {
    const wanted = answerOf(dataset, query);
    let lost = 0;
    await withPool(new WorkerPool(threads), async (workers) => {
      for (;;) {
        columns.evict('');
        const before = snapshot.released();
        await workers.run(poison, { jobs: lost });
        const outcome = await textOf(executeScan(snapshot, query, { workers }).lines).catch(
          (error: unknown) => error,
        );
        await released(snapshot, before + 1);
        if (typeof outcome === 'string') {
          expect(outcome === wanted).toBe(true);
          return;
        }
        expect(outcome).toMatchObject({ message: 'a worker thread ended with code 3' });
        lost++;
        expect(lost).toBeLessThan(200);
        expect((await textOf(executeScan(snapshot, query, { workers }).lines)) === wanted).toBe(true);
      }
    });
    return lost;
  }

  it('while it searches rows fails, whichever job was lost, and the next scan succeeds', async () => {
    const some = await stored(`some-${threads}`, 400, 100);
    const query = { limit: 1000, after, predicates: [level('error'), like('request')] };
    expect(await lose(some, query)).toBeGreaterThan(threads === 1 ? 8 : 2);
  });

  it('while it writes a long answer fails, and returns the memory that it lent', async () => {
    const memory = sharedMemory();
    // By then the kernels of this thread have allocated their memory.
    await textOf(executeScan(large.snapshot, everything).lines);
    const lentBytes = memory.takenBytes - columns.bytes;
    expect(await lose(large, everything)).toBeGreaterThan(2);
    expect(memory.takenBytes - columns.bytes).toBe(lentBytes);
  });
});
