import type { ZoneMap } from '../../columns/zone-map.js';
import type { Column } from '../../columns/column.js';
import type { Position } from '../../core/cursor.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import type { Schema } from '../../core/schema.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import type { PositionedRows, RunList } from '../manifest/run-list.js';
import type { FileFilters } from './filter-request.js';
import type { AttachedTable } from '../attached/attached-list.js';
import type { FarCopy, SegmentEntry } from '../manifest/manifest.js';

/** The unit of the scan: up to 64 Ki rows of one segment, sealed or hot. */
export interface RowGroup {
  readonly rows: number;
  /** The file and the row group's index in it, for `--explain` and error messages. */
  readonly file: string;
  readonly index: number;
  readonly hot: boolean;
  /** Set where the rows are in a file of a table, which may be rewritten. */
  readonly table?: AttachedTable | undefined;
  /** Set where some rows keep their positions but are not answered: `OpenRowGroup.hidden` says which, or the other machine leaves them out. */
  readonly hides?: boolean;
  /** Set where the rows are on other machines. Such a row group is never opened and has any number of rows. */
  readonly remote?: RemoteRows;
  /** Bytes of memory that the rows take as long as somebody refers to them; undefined where they come from files or are hot. */
  readonly bytes?: number;
  /** Bounds of the placement field that the manifest gives without opening the file; null when unknown. */
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  /** The opened row group where the segment's footer is in memory already; else null. */
  opened(threads?: JobQueue | null): OpenRowGroup | null;
  /** The filters of the file. All row groups of a file share one object. */
  readonly filters: FileFilters;
  /**
   * Reads and checks the segment's footer, which is cached. Its bytes are counted for the call that reads it. Throws `DamageError` when the footer or this row group is damaged. The opened row group reads its columns on
   * `threads` where that is possible.
   */
  open(threads?: JobQueue | null, counters?: ReadCounters): Promise<OpenRowGroup>;
}

/** Rows that are in no file of this machine. */
export interface RemoteRows {
  readonly agent: string;
  /** The copy in a cluster; null if the writer on another machine has the rows. */
  readonly copy: FarCopy | null;
  /** The schema with which they are stored there. */
  readonly stored: Schema;
  /** Estimated bytes of a row in an answer. */
  readonly rowBytes: number;
  /** Equal for rows that one question can ask for together. */
  readonly group: string;
}

/** Remote rows as one row group. Plans use it; it is never opened. */
export function remoteRowGroup(
  { file, rows, timeMinMs, timeMaxMs }: Pick<SegmentEntry, 'file' | 'rows' | 'timeMinMs' | 'timeMaxMs'>,
  remote: RemoteRows,
  hides = false,
): RowGroup {
  const facts = { file, rows, timeMinMs, timeMaxMs, hides, remote, index: 0, hot: false };
  return {
    ...facts,
    filters: { rowGroups: 1, ask: () => null },
    opened: () => null,
    open: () => Promise.reject(new Error(`${file} is on another machine and can't be opened`)),
  };
}

/** How the rows of a segment's copy in a cluster are read. Only the copy that the manifest names counts. */
export function rowsOfCopy(agent: string, copy: FarCopy, schemaVersion: number, stored: Schema): RemoteRows {
  return { agent, copy, stored, rowBytes: copy.bytes / copy.rows, group: `${copy.shard} ${schemaVersion}` };
}

/**
 * Whether a column is likely to be read again by later queries. A column that is read `once`, to write out most of its rows, is evicted
 * first: otherwise one long answer would fill the cache with columns that nobody asks for again.
 */
export type ColumnUse = 'again' | 'once';

/** Columns that may be read until they are released. After that their memory may be overwritten. */
export interface HeldColumns {
  readonly columns: readonly Column[];
  /** Called once, in a `finally`. */
  release(): void;
}

/** How columns are held, and what happens when there is no memory for them. */
export interface HoldOptions {
  /** `again` if absent. */
  readonly use?: ColumnUse;
  /** Aborts a wait for memory. */
  readonly signal?: AbortSignal | undefined;
  /** Called before a wait for memory. It must release all columns that the query holds: a query that waits for memory must hold none. */
  readonly onWait?: (() => void) | undefined;
  /** Decode on the heap instead of waiting for memory. For a query that cannot release what it holds. */
  readonly neverWaits?: boolean;
}

/** The stored size of a column chunk. The same object stands for the same chunk as long as the row group is open. */
export interface ChunkSize {
  readonly bytes: number;
}

/** Rows of a row group. */
export interface WantedRows {
  readonly rowGroup: RowGroup;
  readonly rows: Uint32Array;
}

/** The values of rows: those of each of `taken`, one after another. */
export interface ReadRows {
  readonly columns: readonly Column[];
  readonly taken: readonly WantedRows[];
}

/** A row group whose footer has been read: it gives zone maps and columns by field number of the current schema. */
export interface OpenRowGroup {
  /** The chunk that is read for a field. Undefined, or no such method, where nothing is read from a file. */
  chunkSize?(field: number): ChunkSize | undefined;
  /** Zone map of field number `field`, converted to the type of the current schema; null when nothing is known. */
  zone(field: number): ZoneMap | null;
  /**
   * Searches a string column without keeping it in memory: resolves to whether a value may contain one of the needles. Null where the
   * column is in memory already, or should be kept there. True for a damaged column, so that the caller reads it and gets the error.
   */
  searchStreamed?(
    field: number,
    needles: readonly KernelNeedle[],
    counters: ReadCounters,
  ): Promise<boolean | null>;
  /** The rows that are not answered, whatever the reason, one bit for each. Only of a row group that `hides` some. */
  hidden?(counters: ReadCounters, options?: HoldOptions): Promise<Uint8Array>;
  /** Whether the value filters in the attached file itself rule out all rows. Adds what is read to `counters`. */
  isRuledOutByFile?(questions: readonly FilterQuestion[], counters: ReadCounters): Promise<boolean>;
  /** Whether the column of the field is in memory. */
  isInMemory(field: number): boolean;
  /**
   * The decoded columns of these field numbers, converted to the current schema; all null where the segment has no such field. While there
   * is no memory for them the call waits and holds none of them. Throws `DamageError` on a failed checksum.
   */
  columns(fields: readonly number[], counters: ReadCounters, options?: HoldOptions): Promise<HeldColumns>;
  /** Whether `rowsOf` is to be preferred for few rows, because whole columns take long to decode. */
  prefersRows?(fields: readonly number[]): boolean;
  /**
   * The values of these fields in some rows, on the heap. Others that are wanted of the same part of the file are read with those of this row
   * group. Null where too many of its rows are wanted.
   */
  rowsOf?(
    fields: readonly number[],
    wanted: readonly WantedRows[],
    counters: ReadCounters,
  ): Promise<ReadRows | null>;
  /** Like `columns`, without a wait; null where a column is not in memory. */
  columnsInMemory?(fields: readonly number[], counters: ReadCounters, use?: ColumnUse): HeldColumns | null;
}

/**
 * Rows of one row group whose positions are consecutive. The runs of a snapshot ascend by position and never overlap,
 * though the segments they lie in do.
 */
export type SnapshotRun = PositionedRows<RowGroup>;

/** The runs of a snapshot. */
export type SnapshotRuns = RunList<RowGroup>;

/** The number of the newest manifest that runs have been shown for. */
export const manifestNumbers = new WeakMap<SnapshotRuns, number>();

/** One state of an agent's records: the manifest and the committed hot data at one moment. Pins its files until released. */
export interface Snapshot {
  readonly schema: Schema;
  readonly runs: SnapshotRuns;
  release(): void;
}

/** The position after the last record: partition 0, ordinal 0 where there is none. */
export function endOfSnapshot({ runs }: Pick<Snapshot, 'runs'>): Position {
  const run = runs.at(-1);
  if (run === undefined) return { partition: 0, ordinal: 0 };
  return { partition: run.partition, ordinal: run.firstOrdinal + run.rows };
}
