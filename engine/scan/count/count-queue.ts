import { assert } from '../../terms/assert.js';
import { arraysOf, columnBytes, type Column } from '../../columns/column.js';
import { extremeRows } from '../../columns/zone-map.js';
import { plainColumn } from '../../columns/take.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import {
  countBucketsMax,
  countJobBytesMax,
  countJobRowGroupsMax,
  countScratchBytes,
} from '../../terms/limits.js';
import { InOrder } from '../../workers/in-order.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { resultOf, settled, type Steps } from '../../store/reading/steps.js';
import type { CountQuery } from '../plan/count.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import { countTask, packCounts, unpackCounts } from './count-task.js';
import { countRows, type RowsToCount } from './row-counts.js';
import type { RowGroupCount } from './row-group-count.js';
import { tallyCells, tallyCounts, tallyEachRow, type HeldRowGroup } from './tally-row-group.js';
import type { Tally } from './tally.js';
import { bucketsBetween } from './time-ranges.js';

/** A row group whose columns are held, and what is counted of it. */
interface ReadyRowGroup {
  readonly held: HeldRowGroup;
  /** Null where the rows are counted one by one. */
  readonly toCount: RowsToCount | null;
}

/** What a count works with. */
export interface CountWork extends ScanWork {
  /** Bytes of columns that the answering thread counts itself, where they are in memory. Threads count the rest. */
  readonly inlineBytesMax: number;
}

const noStarts = new BigInt64Array(0);

/**
 * Counts row groups into a tally, in any order. With threads, they count the row groups that are in memory, several in one job, and the
 * columns of others are read ahead. The number of jobs at a time is bounded.
 */
export class CountQueue {
  readonly #query: CountQuery;
  readonly #tally: Tally;
  readonly #work: CountWork;
  /** Not null in the second pass, which only counts values by bucket: the column of each value in the answer, or -1. */
  readonly #columnOf: Int32Array | null;
  /** Row groups for the next job. They were in memory when they were added. */
  #queued: RowGroupCount[] = [];
  readonly #jobs: InOrder;
  /** Bytes of the columns that this thread has counted. */
  #inlineBytes = 0;

  constructor(query: CountQuery, tally: Tally, work: CountWork, columnOf: Int32Array | null) {
    this.#query = query;
    this.#tally = tally;
    this.#work = work;
    this.#columnOf = columnOf;
    this.#jobs = new InOrder(work.threads === null ? 0 : 2 * work.threads.count);
  }

  /** Adds a row group. If a promise is returned, it must be awaited before the next call. */
  add(group: RowGroupCount): Promise<void> | void {
    const fields = this.#fieldsOf(group);
    const isInMemory = fields.every((field) => group.open.isInMemory(field));
    if (!isInMemory) return this.#jobs.add(() => this.#readAndCount(group), nothingMore);
    const isInline = this.#work.threads === null || fields.length === 0 || this.#columnOf !== null;
    if (isInline || this.#inlineBytes < this.#work.inlineBytesMax) return this.#countNow(group);
    this.#queued.push(group);
    if (this.#queued.length === countJobRowGroupsMax) return this.#begin();
  }

  /** Counts the remaining row groups, and waits for all jobs. */
  async finish(): Promise<void> {
    if (this.#queued.length > 0) await this.#begin();
    await this.#jobs.drain();
  }

  /** Waits for the jobs that are running and ignores their results. */
  drop(): Promise<void> {
    return this.#jobs.drop();
  }

  #begin(): Promise<void> {
    const groups = this.#queued;
    this.#queued = [];
    return this.#jobs.add(() => this.#countThere(groups), nothingMore);
  }

  #fieldsOf({ time, value }: RowGroupCount): number[] {
    return [
      ...(time?.kind === 'column' ? [this.#query.time!.field] : []),
      ...(value?.kind === 'column' ? [this.#query.values!.field] : []),
    ];
  }

  #newLease(): ColumnLease {
    const { pace, onWait } = this.#work;
    return new ColumnLease({ signal: pace.signal, onWait });
  }

  #countNow(group: RowGroupCount): void {
    const lease = this.#newLease();
    try {
      const held = this.#holdNow(group, lease);
      const ready = this.#ready(held);
      // A row group that takes long uses up the budget of this thread, so that threads count the following ones.
      this.#inlineBytes += isLong(ready) ? Infinity : bytesOf(held);
      this.#countHere(ready);
    } finally {
      lease.release();
    }
  }

  /** Like `#hold`, where all columns are in memory. */
  #holdNow(group: RowGroupCount, lease: ColumnLease): HeldRowGroup {
    const held = resultOf(this.#hold(group, lease));
    assert(!(held instanceof Promise), 'what is in memory need not be waited for');
    return held;
  }

  /** Gets the columns that a row group is counted by, held by the lease. */
  *#hold(group: RowGroupCount, lease: ColumnLease): Steps<never, HeldRowGroup> {
    const fields = this.#fieldsOf(group);
    const columns =
      fields.length === 0 ? [] : yield* settled(group.open.columns(fields, this.#work.stats, lease));
    const time = group.time?.kind === 'column' ? columns[0]! : null;
    const value = group.value?.kind === 'column' ? columns.at(-1)! : null;
    return { group, time, value };
  }

  async #readAndCount(group: RowGroupCount): Promise<void> {
    const lease = this.#newLease();
    try {
      const held = await resultOf(this.#hold(group, lease));
      await this.#work.pace.pause();
      const ready = this.#ready(held);
      if (isLong(ready) && this.#isShared(held)) await this.#countJob([ready]);
      else this.#countHere(ready);
    } finally {
      lease.release();
    }
  }

  /** Counts row groups on a thread. This thread counts those that have been evicted meanwhile, or are not in shared memory. */
  async #countThere(groups: readonly RowGroupCount[]): Promise<void> {
    for (let next = 0; next < groups.length;) {
      const lease = this.#newLease();
      const ready: ReadyRowGroup[] = [];
      const others: RowGroupCount[] = [];
      try {
        for (let bytes = 0; next < groups.length && bytes < countJobBytesMax; next++) {
          const held = this.#holdIfInMemory(groups[next]!, lease);
          if (held === null) others.push(groups[next]!);
          else {
            ready.push(this.#ready(held));
            bytes += bytesOf(held);
          }
        }
        if (ready.length > 0) await this.#countJob(ready);
      } finally {
        lease.release();
      }
      for (const group of others) await this.#readAndCount(group);
    }
  }

  /** Like `#hold`; null where the columns are not in memory that threads share. */
  #holdIfInMemory(group: RowGroupCount, lease: ColumnLease): HeldRowGroup | null {
    if (!this.#fieldsOf(group).every((field) => group.open.isInMemory(field))) return null;
    const own = this.#newLease();
    const held = this.#holdNow(group, own);
    if (this.#isShared(held)) {
      lease.add(() => own.release());
      return held;
    }
    own.release();
    return null;
  }

  #isShared({ time, value }: HeldRowGroup): boolean {
    const memory = sharedMemory();
    return [time, value].every(
      (column) => column === null || arraysOf(column).every((array) => memory.holds(array)),
    );
  }

  /** What is counted of a row group. Where the zone maps did not tell the buckets, the time column does. */
  #ready({ group, time, value }: HeldRowGroup): ReadyRowGroup {
    const buckets = group.buckets ?? this.#bucketsOf(time);
    const held = { group: { ...group, buckets }, time, value };
    if (this.#columnOf !== null || (time !== null && buckets === null)) return { held, toCount: null };
    const starts = time === null ? noStarts : BigInt64Array.from(buckets!, ({ from }) => BigInt(from));
    const wantsPairs = time !== null && value !== null && !this.#tally.cells.isFull;
    return {
      held,
      toCount: { counted: group.counted, count: group.count, time, starts, value, wantsPairs },
    };
  }

  #bucketsOf(time: Column | null): RowGroupCount['buckets'] {
    if (time === null) return null;
    const plain = plainColumn(time);
    if (plain.kind !== 'int64') return null;
    const extremes = extremeRows(plain);
    if (extremes === null) return [];
    const [min, max] = [plain.values[extremes.least]!, plain.values[extremes.greatest]!];
    return bucketsBetween(this.#query.time!.buckets, min, max, countBucketsMax);
  }

  #countHere({ held, toCount }: ReadyRowGroup): void {
    const counts = toCount === null ? null : countRows(toCount);
    if (counts?.valueCounts === undefined || counts.valueCounts === null) this.#countEachRow(held);
    else tallyCounts(this.#tally, held, counts);
  }

  #countEachRow(held: HeldRowGroup): void {
    const buckets = this.#query.time?.buckets ?? null;
    if (this.#columnOf === null) tallyEachRow(this.#tally, held, buckets);
    else tallyCells(this.#tally, held, buckets!, this.#columnOf);
  }

  async #countJob(ready: readonly ReadyRowGroup[]): Promise<void> {
    const { threads, pace } = this.#work;
    const memory = sharedMemory();
    const forThreads = ready.filter(({ toCount }) => toCount !== null);
    const address = forThreads.length === 0 ? null : memory.allocate(countScratchBytes);
    if (address === null || threads === null) {
      ready.forEach((each) => this.#countHere(each));
      return;
    }
    const packed = packCounts(
      forThreads.map(({ held, toCount }) => ({ ...toCount!, rows: held.group.rows })),
    );
    const job = {
      ...packed,
      memoryBytes: memory.buffer.byteLength,
      scratch: memory.rangeAt(address, countScratchBytes),
    };
    const transfer = [packed.rowGroups.buffer, packed.bits.buffer, packed.starts.buffer];
    const counting = threads.run(countTask, job, transfer).finally(() => memory.free(address));
    threads.track(counting);
    const counts = unpackCounts(await counting);
    for (const [i, { held }] of forThreads.entries()) {
      if (counts[i]!.valueCounts === null) this.#countEachRow(held);
      else tallyCounts(this.#tally, held, counts[i]!);
      await pace.pause();
    }
    for (const { held, toCount } of ready) if (toCount === null) this.#countEachRow(held);
  }
}

const nothingMore = async (): Promise<void> => undefined;

/** Whether counting takes long enough for another thread: values without a dictionary have to be numbered first. */
function isLong({ toCount }: ReadyRowGroup): boolean {
  return toCount !== null && toCount.value !== null && toCount.value.kind !== 'dictionary';
}

function bytesOf({ time, value }: HeldRowGroup): number {
  return [time, value].reduce((sum, column) => sum + (column === null ? 0 : columnBytes(column)), 0);
}
