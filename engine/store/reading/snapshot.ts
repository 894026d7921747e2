import type { ZoneMap } from '../../columns/zone-map.js';
import type { Column } from '../../columns/column.js';
import type { Position } from '../../terms/cursor.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import type { Schema } from '../../terms/schema.js';
import type { ColumnLease } from './column-lease.js';
import type { QueryThreads } from './query-threads.js';
import type { ReadCounters } from './read-counters.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import type { PositionedRows, RunList } from '../runs/run-list.js';
import type { AskableFilters } from './filter-ask.js';
import type { FarRows } from '../far/far-rows.js';

/** The unit of the scan: up to 64 Ki rows of one segment, sealed or hot. */
export interface RowGroup {
  readonly rows: number;
  /** For `--explain` and errors: the file, and the row group's index in it. */
  readonly file: string;
  readonly index: number;
  readonly hot: boolean;
  /** Where its rows are, if that is in no file of ours: then it is not opened, and may have any number of rows. */
  readonly far?: FarRows;
  /** Bounds of the placement field that the manifest gives without opening the file; null when unknown. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  /** Whether its footer is in memory, so that `open` gives no promise. */
  isOpen(): boolean;
  /** Those of its file, the same for all row groups of it. */
  readonly filters: AskableFilters;
  /**
   * Reads and checks the segment's footer (cached). Throws `DamageError` when it, or this row group, is damaged. Files are then
   * read by the threads where there are any and they can. No promise where the footer has been read before; who reads it has it counted.
   */
  open(threads?: QueryThreads | null, counters?: ReadCounters): OpenRowGroup | Promise<OpenRowGroup>;
  /**
   * The columns of all fields where they are in memory, without a lease: they may be read until the caller lets others work. The same
   * list as long as they stay there, so that what is made of it can be kept. Null where one of them would have to be waited for.
   */
  columnsNow(): readonly Column[] | null;
}

/**
 * Whether a column is worth keeping in memory for the queries to come. One that is read to write out most of its rows is the
 * first to go when room is wanted: a long answer would fill the memory with what nobody asks for again.
 */
export type ColumnUse = 'again' | 'once';

/** Where a column's values lie in a file: the same object for the same bytes, as long as the row group is open. */
export interface ChunkSize {
  readonly bytes: number;
}

export interface OpenRowGroup {
  /** What is read of its file for a field. Undefined, or not there, where nothing is. */
  chunkSize?(field: number): ChunkSize | undefined;
  /** Zone map of the schema's field number `field`; null when nothing is known. Already in the type of the current schema. */
  zone(field: number): ZoneMap | null;
  /**
   * Whether a value of the string field may hold one of the needles. The column is searched without keeping it in memory. Null where the
   * column is in memory already, or worth keeping there. True for a damaged column: reading it says what is wrong.
   */
  searchStreamed?(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean> | null;
  /**
   * Whether filters that the file itself has of whole values rule all rows out; what they were asked is counted. Null, or not there, where
   * there are none to be asked.
   */
  isRuledOutByFile?(questions: readonly FilterQuestion[], counters: ReadCounters): Promise<boolean> | null;
  /** Whether the column of the field is in memory, so that nobody need wait for it. */
  isAtHand(field: number): boolean;
  /**
   * The decoded columns of the schema's fields of these numbers, converted to the current schema: all null where the segment
   * has no such field. They may be read until `lease` is released. Waits, holding none, while there is
   * no memory for them. Throws `DamageError` on a failed checksum. No promise where all of them are at hand.
   */
  columns(
    fields: readonly number[],
    counters: ReadCounters,
    lease: ColumnLease,
    use?: ColumnUse,
  ): Column[] | Promise<Column[]>;
}

/**
 * Rows of one row group whose positions are consecutive. The runs of a snapshot ascend by position and never overlap,
 * though the segments they lie in do.
 */
export type SnapshotRun = PositionedRows<RowGroup>;

/** Those of a snapshot. */
export type SnapshotRuns = RunList<RowGroup>;

/** One state of an agent's records: the manifest and the committed hot data at one moment. Pins its files until released. */
export interface Snapshot {
  readonly schema: Schema;
  readonly runs: SnapshotRuns;
  release(): void;
}

/** The position behind the last record. */
export function endOfSnapshot({ runs }: Snapshot): Position {
  const run = runs.at(-1);
  if (run === undefined) return { partition: 0, ordinal: 0 };
  return { partition: run.partition, ordinal: run.firstOrdinal + run.rows };
}
