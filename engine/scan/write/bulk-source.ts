import { assert } from '../../terms/assert.js';
import type { Column } from '../../columns/column.js';
import type { JsonKeys } from '../../kernels/json-rows.js';
import { placedBlock, type KernelBlock } from '../../kernels/json-kernel.js';
import { bulkRowsMin } from '../../terms/limits.js';
import { ColumnLease } from '../../store/reading/column-lease.js';
import { jsonColumns } from './json-columns.js';
import { PartCutter, partsOf, type LinePart } from './line-parts.js';
import type { QueryThreads } from '../../store/reading/query-threads.js';
import type { ScanWork } from '../filter/row-group-filter.js';
import type { ColumnUse, OpenRowGroup } from '../../store/reading/snapshot.js';
import type { Schema } from '../../terms/schema.js';
import { settled, type Steps } from '../../store/reading/steps.js';
import type { Matches } from '../filter/selection.js';
import type { ReadCounters } from '../../store/reading/read-counters.js';

/** Digits of a number, roughly, and what stands in every line besides keys and values. */
const numberBytes = 12;
const frameBytes = 32;

/** The columns of a row group, for as long as they are held. */
export interface HeldColumns {
  readonly columns: readonly Column[];
  /** They as threads are told of them; null where not all of them lie in the kernels' memory. */
  readonly block: KernelBlock | null;
  /** About how long a line is. */
  readonly lineBytes: number;
}

/** Fields that are written, and their keys. */
export interface BulkFields {
  readonly fields: readonly number[];
  readonly keys: JsonKeys;
  readonly schema: Schema;
}

/** Matches of a row group on their way to threads: their columns, held while any thread reads them. */
export class BulkSource {
  readonly #work: ScanWork;
  readonly #fields: BulkFields;
  readonly #use: ColumnUse;
  readonly #parts: PartCutter;
  /** The row group, once opened. */
  #open: OpenRowGroup | undefined;
  /** Opens it and reads the columns ahead; undefined where they were in memory. */
  readonly #reading: Promise<void> | undefined;
  #isRead = false;
  #lease = new ColumnLease();
  #held: HeldColumns | undefined;
  #jobs = 0;
  /** Whether the statistics have its columns. */
  #isCounted = false;
  /** Not yet taken. */
  rowsLeft: number;

  constructor(matches: Matches, fields: BulkFields, work: ScanWork, threads: QueryThreads) {
    this.#work = work;
    this.#fields = fields;
    // What an answer takes most rows of leaves its columns out of the cache: it costs more than decoding them.
    this.#use = matches.take < bulkRowsMin ? 'again' : 'once';
    this.#parts = new PartCutter(partsOf(matches));
    this.rowsLeft = matches.take;
    const opening = matches.unit.rowGroup.open(threads, work.stats);
    if (!(opening instanceof Promise)) this.#open = opening;
    if (this.isAtHand) return;
    this.#reading = this.#readAhead(opening);
    this.#reading.catch(() => undefined);
    threads.track(this.#reading);
  }

  /** Whether its columns are in memory. */
  get isAtHand(): boolean {
    const open = this.#open;
    return open !== undefined && this.#fields.fields.every((field) => open.isAtHand(field));
  }

  /** Whether its columns have been read ahead, though they may have left memory since. */
  get isRead(): boolean {
    return this.#isRead || this.#reading === undefined;
  }

  async #readAhead(opening: OpenRowGroup | Promise<OpenRowGroup>): Promise<void> {
    try {
      this.#open = await opening;
      const lease = this.#newLease();
      try {
        await this.#columns(this.#open, lease);
      } finally {
        lease.release();
      }
    } finally {
      this.#isRead = true;
    }
  }

  /** The columns, held from here on until every job that was begun with them has ended. */
  *hold(): Steps<never, HeldColumns> {
    if (this.#held !== undefined) return this.#held;
    if (this.#reading !== undefined) yield* settled(this.#reading);
    const lease = this.#newLease();
    try {
      const reading = this.#columns(this.#open!, lease);
      return this.#hold(reading instanceof Promise ? yield* settled(reading) : reading, lease);
    } finally {
      if (this.#lease !== lease) lease.release();
    }
  }

  /** As `hold`, where they need not be waited for; else null. */
  holdAtHand(): HeldColumns | null {
    if (this.#held !== undefined) return this.#held;
    if (!this.isAtHand) return null;
    const lease = this.#newLease();
    const columns = this.#columns(this.#open!, lease);
    assert(!(columns instanceof Promise), 'what is at hand need not be waited for');
    return this.#hold(columns, lease);
  }

  #newLease(): ColumnLease {
    const { pace, onWait } = this.#work;
    return new ColumnLease({ signal: pace.signal, onWait });
  }

  #hold(columns: readonly Column[], lease: ColumnLease): HeldColumns {
    this.#lease = lease;
    this.#held = heldColumns(this.#fields, columns);
    return this.#held;
  }

  /** The next `rows` rows, which a job is begun for; `ended` tells of its end. */
  take(rows: number): LinePart[] {
    const parts = this.#parts.take(rows);
    this.rowsLeft -= Math.min(rows, this.rowsLeft);
    this.#jobs++;
    return parts;
  }

  ended(): void {
    this.#jobs--;
    if (this.#jobs === 0) this.letGo();
  }

  /** Lets go of the columns; no job that was begun with them may be under way. */
  letGo(): void {
    this.#held = undefined;
    this.#lease.release();
  }

  /** What was let go since it was read, and is still there, is not counted a second time. */
  #columns(open: OpenRowGroup, lease: ColumnLease): Column[] | Promise<Column[]> {
    const { stats } = this.#work;
    const { fields } = this.#fields;
    if (!this.#isCounted) {
      this.#isCounted = true;
      return open.columns(fields, stats, lease, this.#use);
    }
    const counters: ReadCounters = { bytesRead: 0, columnsDecoded: 0, columnsCached: 0, gramPiecesRead: 0 };
    const reading = open.columns(fields, counters, lease, this.#use);
    if (!(reading instanceof Promise)) return reading;
    return reading.then((columns) => {
      stats.bytesRead += counters.bytesRead;
      stats.columnsDecoded += counters.columnsDecoded;
      return columns;
    });
  }
}

/** What the columns of row groups were held as last, by the first of them: the pool gives each query the same. */
const heldLast = new WeakMap<Column, { readonly keys: JsonKeys; readonly held: HeldColumns }>();

function heldColumns({ keys, schema }: BulkFields, columns: readonly Column[]): HeldColumns {
  const [first] = columns;
  const last = first === undefined ? undefined : heldLast.get(first);
  if (last?.keys === keys && columns.every((column, i) => column === last.held.columns[i])) return last.held;
  // Entries that are rendered beforehand lie elsewhere: none are for fewer rows.
  const held = {
    columns,
    block: placedBlock({ keys: keys.keys, columns: jsonColumns(columns, schema, 0) }),
    lineBytes: lineBytes(keys, columns),
  };
  if (first !== undefined) heldLast.set(first, { keys, held });
  return held;
}

function lineBytes({ keys }: JsonKeys, columns: readonly Column[]): number {
  const keyBytes = keys.reduce((sum, key) => sum + key.length, 0);
  return columns.reduce((sum, column) => sum + valueBytes(column), frameBytes + keyBytes);
}

/** About how long a value is. */
function valueBytes(column: Column): number {
  if (column.kind === 'dictionary') return valueBytes(column.values);
  if (column.kind !== 'bytes') return numberBytes;
  const { offsets, length } = column;
  return 2 + (offsets[length]! - offsets[0]!) / Math.max(1, length);
}
