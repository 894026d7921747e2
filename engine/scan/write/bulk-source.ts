import { assert } from '../../terms/assert.js';
import type { Column } from '../../columns/column.js';
import { lineTable, type LineKeys, type KernelBlock } from '../../kernels/json-rows.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { jsonColumns } from './json-columns.js';
import { RowGroupColumns } from './row-group-columns.js';
import { PartCutter, partsOf, type LinePart } from './line-parts.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import { resultOf, settled, type Steps } from '../../store/reading/steps.js';
import type { Matches } from '../filter/selection.js';
import type { WrittenFields } from './written-fields.js';

/** Approximate bytes of a number, and of what each line has besides keys and values. */
const numberBytes = 12;
const frameBytes = 32;

/** The columns of a row group while they are held. */
export interface HeldColumns {
  readonly columns: readonly Column[];
  /** The description of the columns for threads; null where not all of them are in the kernels' memory. */
  readonly block: KernelBlock | null;
  /** Approximate length of a line in bytes. */
  readonly lineBytes: number;
}

/** Matches of a row group that threads will write, and their columns, which are held while any thread reads them. */
export class BulkSource {
  readonly #fields: WrittenFields;
  readonly #rows: number;
  readonly #parts: PartCutter;
  readonly #columns: RowGroupColumns;
  /** Settles when the columns have been read ahead; undefined where they were in memory. */
  readonly #reading: Promise<void> | undefined;
  #isRead = false;
  #lease = new ColumnLease();
  #held: HeldColumns | undefined;
  #jobs = 0;
  /** Number of rows that have not been taken. */
  rowsLeft: number;

  constructor(matches: Matches, fields: WrittenFields, work: ScanWork, threads: QueryThreads) {
    this.#fields = fields;
    this.#rows = matches.take;
    this.#parts = new PartCutter(partsOf(matches));
    this.rowsLeft = matches.take;
    this.#columns = new RowGroupColumns(matches.unit.rowGroup, fields.fields, work);
    if (this.isInMemory) return;
    this.#reading = this.#readAhead();
    this.#reading.catch(() => undefined);
    threads.track(this.#reading);
  }

  /** Whether all of its columns are in memory. */
  get isInMemory(): boolean {
    return this.#columns.areInMemory;
  }

  /** Whether its columns have been read ahead. They may have been evicted since. */
  get isRead(): boolean {
    return this.#isRead || this.#reading === undefined;
  }

  async #readAhead(): Promise<void> {
    const lease = this.#columns.newLease();
    try {
      await resultOf(this.#columns.read(lease, this.#rows));
    } finally {
      lease.release();
      this.#isRead = true;
    }
  }

  /** Gets the columns and holds them until every job that was begun with them has ended. */
  *hold(): Steps<never, HeldColumns> {
    if (this.#held !== undefined) return this.#held;
    if (this.#reading !== undefined && !this.isInMemory) yield* settled(this.#reading);
    const lease = this.#columns.newLease();
    try {
      return this.#hold(yield* this.#columns.read(lease, this.#rows), lease);
    } finally {
      if (this.#lease !== lease) lease.release();
    }
  }

  /** Like `hold`, where nothing has to be waited for; else null. */
  holdIfInMemory(): HeldColumns | null {
    if (this.#held !== undefined) return this.#held;
    if (!this.isInMemory) return null;
    const held = resultOf(this.hold());
    assert(!(held instanceof Promise), 'what is in memory need not be waited for');
    return held;
  }

  #hold(columns: readonly Column[], lease: ColumnLease): HeldColumns {
    this.#lease = lease;
    this.#held = heldColumns(this.#fields, columns);
    return this.#held;
  }

  /** Takes the next `rows` rows for a job. The caller must call `ended` when the job has ended. */
  take(rows: number): LinePart[] {
    const parts = this.#parts.take(rows);
    this.rowsLeft -= Math.min(rows, this.rowsLeft);
    this.#jobs++;
    return parts;
  }

  /** Notes that a job has ended. Releases the columns after the last one. */
  ended(): void {
    this.#jobs--;
    if (this.#jobs === 0) this.release();
  }

  /** Releases the columns. No job that uses them may be running. */
  release(): void {
    this.#held = undefined;
    this.#lease.release();
  }
}

/** The last `HeldColumns` of a row group, by its first column. A column stays the same object while it is in memory. */
const heldLast = new WeakMap<Column, { readonly keys: LineKeys; readonly held: HeldColumns }>();

function heldColumns(written: WrittenFields, columns: readonly Column[]): HeldColumns {
  const { keys } = written;
  const [first] = columns;
  const last = first === undefined ? undefined : heldLast.get(first);
  if (last?.keys === keys && columns.every((column, i) => column === last.held.columns[i])) return last.held;
  const table = lineTable(keys, jsonColumns(columns, written));
  const held = {
    columns,
    block: table.columns === null ? table.block : null,
    lineBytes: lineBytes(keys, columns),
  };
  if (first !== undefined) heldLast.set(first, { keys, held });
  return held;
}

function lineBytes({ keys }: LineKeys, columns: readonly Column[]): number {
  const keyBytes = keys.reduce((sum, key) => sum + key.length, 0);
  return columns.reduce((sum, column) => sum + valueBytes(column), frameBytes + keyBytes);
}

/** Approximate length of a value in bytes. */
function valueBytes(column: Column): number {
  if (column.kind === 'dictionary') return valueBytes(column.values);
  if (column.kind !== 'bytes') return numberBytes;
  const { offsets, length } = column;
  return 2 + (offsets[length]! - offsets[0]!) / Math.max(1, length);
}
