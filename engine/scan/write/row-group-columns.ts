import type { Column } from '../../columns/column.js';
import { bulkRowsMin } from '../../terms/limits.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { newReadCounters } from '../../store/reading/read-counters.js';
import type { OpenRowGroup, RowGroup } from '../../store/reading/snapshot.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { ScanWork } from '../filter/row-group-filter.js';

/**
 * The columns of a row group that lines are written from. They may be released and read again; columns that are still in memory then are
 * counted only once in the statistics of the scan.
 */
export class RowGroupColumns {
  readonly #fields: readonly number[];
  readonly #work: ScanWork;
  readonly #opening: OpenRowGroup | Promise<OpenRowGroup>;
  #open: OpenRowGroup | undefined;
  #isCounted = false;

  constructor(rowGroup: RowGroup, fields: readonly number[], work: ScanWork) {
    this.#fields = fields;
    this.#work = work;
    this.#opening = rowGroup.open(work.threads, work.stats);
    if (!(this.#opening instanceof Promise)) this.#open = this.#opening;
  }

  /** Whether all of them are in memory. */
  get areInMemory(): boolean {
    const open = this.#open;
    return open !== undefined && this.#fields.every((field) => open.isInMemory(field));
  }

  /** A new lease. Before it waits for memory, it calls `onWait` so that the scan gives back what it holds. */
  newLease(): ColumnLease {
    const { pace, onWait } = this.#work;
    return new ColumnLease({ signal: pace.signal, onWait });
  }

  /**
   * The columns in the order of the fields, pinned by `lease`, for writing `rows` rows. Yields a promise only where they are not in memory.
   */
  *read(lease: ColumnLease, rows: number): Steps<never, Column[]> {
    const { stats } = this.#work;
    // Columns that many rows are written from are evicted first: keeping them would cost other queries more than decoding them again.
    const use = rows < bulkRowsMin ? 'again' : 'once';
    this.#open ??= yield* settled(this.#opening);
    const counters = newReadCounters();
    const columns = yield* settled(this.#open.columns(this.#fields, counters, lease, use));
    stats.bytesRead += counters.bytesRead;
    stats.columnsDecoded += counters.columnsDecoded;
    if (!this.#isCounted) stats.columnsCached += counters.columnsCached;
    this.#isCounted = true;
    return columns;
  }
}
