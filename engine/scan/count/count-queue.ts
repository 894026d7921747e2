import { columnBytes, type Column } from '../../columns/column.js';
import { sharedLayout } from '../../columns/column-layout.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import { countCellsMax, countPairsOfRowGroupMax, rowGroupsAheadMax } from '../../terms/limits.js';
import { InOrder } from '../../workers/in-order.js';
import { withLease } from '../../store/reading/column-lease.js';
import type { CountQuery, TimeBucket } from '../plan/count.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import { countsTask } from '../job/row-group-task.js';
import { areFew, countRows, type RowCounts, type RowsToCount } from '../job/row-counts.js';
import type { RowGroupCount } from './row-group-count.js';
import type { Tally } from './tally.js';
import { bucketsOfRows } from './time-ranges.js';
import { knownValues } from './value-bytes.js';

/** What a count works with. */
export interface CountWork extends ScanWork {
  /** Bytes of columns that the answering thread counts itself, where they are in memory. Threads count the rest. */
  readonly inlineBytesMax: number;
}

/**
 * Counts row groups into a tally, in any order. With threads, they read and count several row groups at a time, beyond those that the
 * answering thread counts itself.
 */
export class CountQueue {
  readonly #query: CountQuery;
  readonly #tally: Tally;
  readonly #work: CountWork;
  readonly #counting: InOrder;
  /** Number of row groups that have been counted. */
  #done = 0;
  /** Bytes of the columns that this thread has counted. */
  #inlineBytes = 0;

  constructor(query: CountQuery, tally: Tally, work: CountWork) {
    this.#query = query;
    this.#tally = tally;
    this.#work = work;
    this.#counting = new InOrder(0);
  }

  /** Adds a row group. Each call must be awaited before the next. */
  async add(group: RowGroupCount): Promise<void> {
    const fields = [
      ...(group.readsTime ? [this.#query.time!.field] : []),
      ...(group.readsValue ? [this.#query.values!.field] : []),
    ];
    const isInMemory = fields.every((field) => group.open.isInMemory(field));
    if (isInMemory && this.#isInline(fields)) return this.#count(group, fields, true);
    this.#counting.depth = this.#depth(isInMemory);
    return this.#counting.add(() => this.#count(group, fields, false), nothingMore);
  }

  /** Waits until all row groups have been counted. */
  async finish(): Promise<void> {
    await this.#counting.drain();
  }

  /** Waits for the row groups that are being counted, and ignores failures. */
  async drop(): Promise<void> {
    await this.#counting.drop();
  }

  /**
   * How many row groups to have counted at a time. Many short jobs cost half as much as few, because they are sent together; but a count that
   * is refused should have begun few that it does not need. So there are as many as the bounds leave room for, if the following row groups
   * are like those that have been counted.
   */
  #depth(isInMemory: boolean): number {
    const { threads } = this.#work;
    if (threads === null) return 0;
    const few = 2 * threads.threadCount;
    if (!isInMemory || this.#done === 0) return few;
    const left = this.#done / this.#tally.fullness - this.#done;
    return Math.max(few, Math.min(rowGroupsAheadMax, left));
  }

  /** Whether this thread counts by columns itself, if they are in memory. In a second pass it looks at their values before that. */
  #isInline({ length }: readonly number[]): boolean {
    if (this.#work.threads === null || length === 0 || this.#tally.first !== null) return true;
    return this.#inlineBytes < this.#work.inlineBytesMax;
  }

  #count(group: RowGroupCount, fields: readonly number[], isInline: boolean): Promise<void> {
    const { pace, stats, onWait } = this.#work;
    return withLease({ signal: pace.signal, onWait }, async (lease) => {
      const columns = fields.length === 0 ? [] : await group.open.columns(fields, stats, lease);
      await pace.pause();
      const time = group.readsTime ? columns[0]! : null;
      const column = group.readsValue ? columns.at(-1)! : null;
      const value = column === null ? null : this.#counted(column);
      const buckets = this.#bucketsOf(group, time);
      const job = this.#toCount(group, buckets, time, value);
      // A row group that takes long uses up the budget of this thread, so that threads count the following ones.
      if (isInline) this.#inlineBytes += isLong(job) ? Infinity : bytesOf(job);
      const counts = isInline ? countRows(job) : await this.#countThere(job);
      this.#tally.add(buckets, value?.kind === 'dictionary' ? value.values : (value ?? group.value), counts);
      this.#done++;
    });
  }

  /** A second pass only counts the values of its tally. */
  #counted(value: Column): Column {
    const { first, values } = this.#tally;
    return first === null ? value : knownValues(value, values!);
  }

  #bucketsOf({ buckets, counted }: RowGroupCount, time: Column | null): readonly TimeBucket[] {
    // Where the zone maps did not tell the buckets, the time column does.
    const found = buckets ?? bucketsOfRows(this.#query.time!.buckets, time!, counted);
    const { first } = this.#tally;
    // The first pass knows which of them have rows.
    return first === null ? found : found.filter(({ from }) => first.bucketFrom(from) !== undefined);
  }

  #toCount(
    { counted, count, value: only }: RowGroupCount,
    buckets: readonly TimeBucket[],
    time: Column | null,
    value: Column | null,
  ): RowsToCount {
    const { cells, first } = this.#tally;
    const starts = BigInt64Array.from(buckets, ({ from }) => BigInt(from));
    const pairsMax = first === null ? countPairsOfRowGroupMax : countCellsMax;
    return {
      counted,
      count,
      time,
      starts,
      value,
      hasOneValue: only !== null,
      pairsMax: cells.isFull ? 0 : pairsMax,
    };
  }

  /** Has a thread count, where it can read the columns in place. */
  async #countThere(job: RowsToCount): Promise<RowCounts> {
    const { threads } = this.#work;
    const time = job.time === null ? null : sharedLayout(job.time);
    const value = job.value === null ? null : sharedLayout(job.value);
    const isShared = (time === null) === (job.time === null) && (value === null) === (job.value === null);
    if (threads === null || !isShared) return countRows(job);
    const memoryBytes = sharedMemory().buffer.byteLength;
    const counting = threads.run(countsTask, { ...job, time, value, memoryBytes });
    threads.track(counting);
    return counting;
  }
}

const nothingMore = async (): Promise<void> => undefined;

/** Whether counting takes long enough for another thread: the values of many rows without a dictionary have to be numbered first. */
function isLong({ value, count }: RowsToCount): boolean {
  return value !== null && value.kind !== 'dictionary' && !areFew(count, value);
}

function bytesOf({ time, value }: RowsToCount): number {
  return [time, value].reduce((sum, column) => sum + (column === null ? 0 : columnBytes(column)), 0);
}
