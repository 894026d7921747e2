import { columnBytes, type Column } from '../../columns/column.js';
import { sharedLayout } from '../../columns/column-layout.js';
import { extremeRows } from '../../columns/zone-map.js';
import { plainColumn } from '../../columns/take.js';
import { sharedMemory } from '../../memory/shared-memory.js';
import { countBucketsMax, rowGroupsAheadMax } from '../../terms/limits.js';
import { InOrder } from '../../workers/in-order.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import type { CountQuery } from '../plan/count.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import { countsTask } from '../job/row-group-task.js';
import { countRows, type RowCounts, type RowsToCount } from '../job/row-counts.js';
import type { RowGroupCount } from './row-group-count.js';
import { tallyCells, tallyCounts, tallyEachRow, type HeldRowGroup } from './tally-row-group.js';
import type { Tally } from './tally.js';
import { bucketsBetween } from './time-ranges.js';

/** What a count works with. */
export interface CountWork extends ScanWork {
  /** Bytes of columns that the answering thread counts itself, where they are in memory. Threads count the rest. */
  readonly inlineBytesMax: number;
}

const noStarts = new BigInt64Array(0);

/**
 * Counts row groups into a tally, in any order. With threads, they read and count several row groups at a time, beyond those that the
 * answering thread counts itself.
 */
export class CountQueue {
  readonly #query: CountQuery;
  readonly #tally: Tally;
  readonly #work: CountWork;
  /** Not null in the second pass, which only counts values by bucket: the column of each value in the answer, or -1. */
  readonly #columnOf: Int32Array | null;
  /** The row groups that are being read and counted, and those in memory that are being counted. */
  readonly #reading: InOrder;
  readonly #counting: InOrder;
  /** Bytes of the columns that this thread has counted. */
  #inlineBytes = 0;

  constructor(query: CountQuery, tally: Tally, work: CountWork, columnOf: Int32Array | null) {
    const { threads } = work;
    this.#query = query;
    this.#tally = tally;
    this.#work = work;
    this.#columnOf = columnOf;
    this.#reading = new InOrder(threads === null ? 0 : 2 * threads.count);
    this.#counting = new InOrder(threads === null ? 0 : rowGroupsAheadMax);
  }

  /** Adds a row group. Each call must be awaited before the next. */
  async add(group: RowGroupCount): Promise<void> {
    const fields = this.#fieldsOf(group);
    const isInMemory = fields.every((field) => group.open.isInMemory(field));
    if (!isInMemory) return this.#reading.add(() => this.#count(group, fields, false), nothingMore);
    const isInline = this.#work.threads === null || fields.length === 0 || this.#columnOf !== null;
    if (isInline || this.#inlineBytes < this.#work.inlineBytesMax) return this.#count(group, fields, true);
    return this.#counting.add(() => this.#count(group, fields, false), nothingMore);
  }

  /** Waits until all row groups have been counted. */
  async finish(): Promise<void> {
    await this.#reading.drain();
    await this.#counting.drain();
  }

  /** Waits for the row groups that are being counted, and ignores failures. */
  async drop(): Promise<void> {
    await this.#reading.drop();
    await this.#counting.drop();
  }

  #fieldsOf({ time, value }: RowGroupCount): number[] {
    return [
      ...(time?.kind === 'column' ? [this.#query.time!.field] : []),
      ...(value?.kind === 'column' ? [this.#query.values!.field] : []),
    ];
  }

  async #count(group: RowGroupCount, fields: readonly number[], isInline: boolean): Promise<void> {
    const { pace, stats, onWait, threads } = this.#work;
    const lease = new ColumnLease({ signal: pace.signal, onWait });
    try {
      const columns = fields.length === 0 ? [] : await group.open.columns(fields, stats, lease);
      const pause = pace.pause();
      if (pause !== undefined) await pause;
      const time = group.time?.kind === 'column' ? columns[0]! : null;
      const value = group.value?.kind === 'column' ? columns.at(-1)! : null;
      // Where the zone maps did not tell the buckets, the time column does.
      const buckets = group.buckets ?? this.#bucketsOf(time);
      const held = { group: { ...group, buckets }, time, value };
      const toCount = this.#toCount(held);
      if (toCount === null) return this.#countEachRow(held);
      // A row group that takes long uses up the budget of this thread, so that threads count the following ones.
      if (isInline) this.#inlineBytes += isLong(toCount) ? Infinity : bytesOf(held);
      const counting = isInline || threads === null ? null : this.#countThere(toCount);
      const counts = counting === null ? countRows(toCount) : await counting;
      if (counts.valueCounts === null) this.#countEachRow(held);
      else tallyCounts(this.#tally, held, counts);
    } finally {
      lease.release();
    }
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

  /** What kernels count of a row group; null where the rows are counted one by one. */
  #toCount({ group, time, value }: HeldRowGroup): RowsToCount | null {
    const { buckets, counted, count } = group;
    if (this.#columnOf !== null || (time !== null && buckets === null)) return null;
    const starts = time === null ? noStarts : BigInt64Array.from(buckets!, ({ from }) => BigInt(from));
    const wantsPairs = time !== null && value !== null && !this.#tally.cells.isFull;
    return { counted, count, time, starts, value, wantsPairs };
  }

  /** Has a thread count; null where it could not read the columns in place. */
  #countThere(toCount: RowsToCount): Promise<RowCounts> | null {
    const time = toCount.time === null ? null : sharedLayout(toCount.time);
    const value = toCount.value === null ? null : sharedLayout(toCount.value);
    if ((time === null) !== (toCount.time === null) || (value === null) !== (toCount.value === null))
      return null;
    const job = {
      ...toCount,
      time,
      value,
      memoryBytes: sharedMemory().buffer.byteLength,
    };
    const counting = this.#work.threads!.run(countsTask, job);
    this.#work.threads!.track(counting);
    return counting;
  }

  #countEachRow(held: HeldRowGroup): void {
    const buckets = this.#query.time?.buckets ?? null;
    if (this.#columnOf === null) tallyEachRow(this.#tally, held, buckets);
    else tallyCells(this.#tally, held, buckets!, this.#columnOf);
  }
}

const nothingMore = async (): Promise<void> => undefined;

/** Whether counting takes long enough for another thread: values without a dictionary have to be numbered first. */
function isLong({ value }: RowsToCount): boolean {
  return value !== null && value.kind !== 'dictionary';
}

function bytesOf({ time, value }: HeldRowGroup): number {
  return [time, value].reduce((sum, column) => sum + (column === null ? 0 : columnBytes(column)), 0);
}
