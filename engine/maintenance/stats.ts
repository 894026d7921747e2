import { formatCursor } from '../core/cursor.js';
import { rowsOfFile } from '../store/attached/attached-list.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { RowGroup } from '../store/reading/snapshot.js';
import { restorableOf, type Restorable } from '../store/manifest/coverage.js';
import {
  type FarLeftover,
  type Counters,
  isFarOnly,
  livePlaces,
  liveRows,
  nothingRetired,
  type Retired,
  type SegmentEntry,
  segmentsToRefilter,
} from '../store/manifest/manifest.js';
import type { Schema } from '../core/schema.js';

/** Statistics of an agent, from its manifest and its hot rows. */
export function agentStats(state: AgentState): StoreStats {
  if (state.damage !== undefined) throw state.damage;
  const snapshot = state.snapshot();
  try {
    const { manifest, values, hot } = state;
    const segments = manifest?.segments ?? [];
    const near = segments.filter((segment) => !isFarOnly(segment));
    const rejected = state.rejected();
    const first = snapshot.runs.at(0);
    const last = snapshot.runs.at(-1);
    const groups = new Set<RowGroup>();
    let records = segments.reduce((sum, entry) => sum + liveRows(entry) - livePlaces(entry), 0);
    for (const { deleted } of state.attached.files()) records -= deleted?.rows ?? 0;
    for (const { rowGroup, rows } of snapshot.runs) {
      groups.add(rowGroup);
      records += rows;
    }
    const hotTimes = hot.flatMap(({ rows }) => rows.timeRangeMs() ?? []);
    const mins = [...[...groups].flatMap((group) => group.timeMinMs ?? []), ...hotTimes];
    const maxs = [...[...groups].flatMap((group) => group.timeMaxMs ?? []), ...hotTimes];
    return {
      agent: state.agent,
      manifest: manifest?.number ?? 0,
      records,
      segments: near.length,
      segmentsToRefilter: manifest === undefined ? 0 : segmentsToRefilter(manifest).length,
      rowGroups: near.reduce((sum, segment) => sum + segment.rowGroupRows.length, 0),
      hotRecords: state.hotRowCount,
      hotFiles: hot.length,
      bytesSealed: near.reduce((sum, segment) => sum + segment.bytes, 0),
      bytesZstd: near.reduce((sum, { codec, bytes }) => sum + (codec === 'zstd' ? bytes : 0), 0),
      bytesHot: state.hotBytes,
      bytesGramFilters: near.reduce((sum, segment) => sum + segment.gramFilterBytes, 0),
      bytesValueFilters: near.reduce((sum, segment) => sum + segment.valueFilterBytes, 0),
      attached: attachedStats(state),
      far: farStats(segments, manifest?.farLeftovers ?? []),
      bytesRejected: state.rejectedBytes,
      linesRejected: rejected.reduce((sum, { lines }) => sum + lines, 0),
      timeMinMs: mins.length === 0 ? null : mins.reduce((a, b) => Math.min(a, b)),
      timeMaxMs: maxs.length === 0 ? null : maxs.reduce((a, b) => Math.max(a, b)),
      firstCursor:
        first === undefined
          ? null
          : formatCursor({ partition: first.partition, ordinal: first.firstOrdinal }),
      lastCursor:
        last === undefined
          ? null
          : formatCursor({ partition: last.partition, ordinal: last.firstOrdinal + last.rows - 1 }),
      highestPartition: values.highestPartition,
      sources: values.checkpoints().filter(({ headBytes }) => headBytes > 0).length,
      counters: values.counters,
      schema: state.schema,
      retired: manifest?.retired ?? nothingRetired,
      restorable: manifest === undefined ? [] : restorableOf(manifest),
    };
  } finally {
    snapshot.release();
  }
}

/** Statistics of attached files. */
export interface AttachedStats {
  readonly files: number;
  readonly records: number;
  /** Bytes of the files. They are in no other figure. */
  readonly bytes: number;
  /** Number of indexed files, their bytes, and the bytes of their indexes, which are in the agent's folder. */
  readonly filesIndexed: number;
  readonly bytesIndexed: number;
  readonly bytesIndexes: number;
  readonly order: AttachedOrder;
}

/** How well the rows of attached files are ordered by the hours of their positions. */
export interface AttachedOrder {
  /** Number of files with row groups whose rows are not in order of time. */
  readonly filesUnordered: number;
  /**
   * Number of row groups as the scan sees them (at most 65,536 rows each), and of those whose rows are sorted each time one of their
   * columns is decoded.
   */
  readonly rowGroups: number;
  readonly rowGroupsUnordered: number;
  /** Number of runs. The rows of a row group in one hour are a run, and a page of results reads all row groups with rows in its hours. */
  readonly runs: number;
}

function orderOf(state: AgentState): AttachedOrder {
  const order = { filesUnordered: 0, rowGroups: 0, rowGroupsUnordered: 0, runs: 0 };
  for (const placements of state.attached.placements()) {
    const unordered = placements.filter(({ isOrdered }) => !isOrdered).length;
    if (unordered > 0) order.filesUnordered++;
    order.rowGroups += placements.length;
    order.rowGroupsUnordered += unordered;
    order.runs += placements.reduce((sum, { hours }) => sum + hours.length, 0);
  }
  return order;
}

function attachedStats(state: AgentState): AttachedStats {
  const files = state.attached.files();
  const indexed = files.filter(({ index }) => index !== undefined);
  const bytesOf = (some: readonly { readonly bytes: number }[]) =>
    some.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    files: files.length,
    records: files.reduce((sum, file) => sum + rowsOfFile(file), 0),
    bytes: bytesOf(files),
    filesIndexed: indexed.length,
    bytesIndexed: bytesOf(indexed),
    bytesIndexes: bytesOf(indexed.map(({ index }) => index!)),
    order: orderOf(state),
  };
}

/** Statistics of the far tier. */
export interface FarStats {
  readonly units: number;
  readonly records: number;
  /** Bytes that were sent, uncompressed. */
  readonly bytes: number;
  /** Number of records without a local file. */
  readonly onlyRecords: number;
  /** Time of the last shipped unit (ms); null for never. */
  readonly shippedMs: number | null;
  /** Number of attempts that are to be dropped in the cluster. */
  readonly leftovers: number;
}

function farStats(segments: readonly SegmentEntry[], leftovers: readonly FarLeftover[]): FarStats {
  const shipped = segments.flatMap((entry) => (entry.far === undefined ? [] : [{ entry, far: entry.far }]));
  const rowsOf = (some: readonly { readonly entry: SegmentEntry }[]): number =>
    some.reduce((sum, { entry }) => sum + liveRows(entry), 0);
  return {
    units: shipped.length,
    records: rowsOf(shipped),
    bytes: shipped.reduce((sum, { far }) => sum + far.bytes, 0),
    onlyRecords: rowsOf(shipped.filter(({ far }) => far.isOnly)),
    shippedMs: shipped.reduce<number | null>((last, { far }) => Math.max(last ?? 0, far.shippedMs), null),
    leftovers: leftovers.filter(({ file }) => file === undefined).length,
  };
}

/** Statistics of an agent. Figures of segments and bytes count local files only. */
export interface StoreStats {
  readonly agent: string;
  readonly manifest: number;
  readonly records: number;
  readonly segments: number;
  /** Number of segments whose filters are not those that the fields ask for now. */
  readonly segmentsToRefilter: number;
  readonly rowGroups: number;
  readonly hotRecords: number;
  readonly hotFiles: number;
  readonly bytesSealed: number;
  /** Bytes of the segments whose codec is ZSTD. */
  readonly bytesZstd: number;
  readonly bytesHot: number;
  readonly bytesGramFilters: number;
  readonly bytesValueFilters: number;
  readonly attached: AttachedStats;
  readonly far: FarStats;
  readonly bytesRejected: number;
  /** Number of rejected lines that are kept. */
  readonly linesRejected: number;
  readonly timeMinMs: number | null;
  readonly timeMaxMs: number | null;
  readonly firstCursor: string | null;
  readonly lastCursor: string | null;
  /** The newest hour since the epoch that has held a record; 0 for none. */
  readonly highestPartition: number;
  readonly sources: number;
  readonly counters: Counters;
  /** What retention has removed over the agent's lifetime. */
  readonly retired: Retired;
  /** Lost records that can be restored by loading their files again. */
  readonly restorable: readonly Restorable[];
  readonly schema: Schema;
}
