import { compareRuns } from '../store/manifest/run-list.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { BatchRows } from '../columns/take.js';
import { allColumns } from './all-columns.js';
import { isValid, type Column } from '../columns/column.js';
import { withNulls } from '../columns/take.js';
import { bitmapBytes, orRange, setRange } from '../kernels/bitmap.js';
import { newScanStats } from '../scan/answer.js';
import { preparePredicates } from '../scan/predicate.js';
import { RowGroupFilter } from '../scan/row-group-filter.js';
import { countInRange } from '../scan/selection.js';
import { Pace } from '../store/reading/pace.js';
import { LogstrataError } from '../core/errors.js';
import { heldBytesMax } from '../core/limits.js';
import type { HeldColumns, RowGroup, SnapshotRun } from '../store/reading/snapshot.js';
import { placementField, withRemoved, type Predicate, type Schema } from '../core/schema.js';
import { runsOfSegment } from '../store/reading/agent-state.js';
import { BufferPool } from '../store/reading/buffer-pool.js';
import type { Directory } from '../store/disk/directory.js';
import { Coverage } from '../store/manifest/coverage.js';
import type { OrdinalRun, SegmentEntry } from '../store/manifest/manifest.js';
import { SealedSegment } from '../store/reading/sealed-segment.js';
import type { SegmentFooter } from '../store/sealed/segment-file.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { MergedSegments } from '../store/load/segment-builder.js';
import type { Codec } from '../parquet/compression.js';
import { newReadCounters } from '../store/reading/read-counters.js';

/** Segments of one day with the same columns to be rewritten. Plain data, so that it can be sent to a thread. */
export interface RewriteJob {
  readonly agent: string;
  /** The unit of work that builds the new segments. */
  readonly id: string;
  readonly segments: readonly SegmentEntry[];
  /** The schema to write: the same columns, with the filters that the fields ask for now. */
  readonly schema: Schema;
  readonly schemaVersion: number;
  readonly codec: Codec;
  /** Positions to leave out, because they are removed. Absent: none. */
  readonly removed?: readonly OrdinalRun[] | undefined;
  /** Rules of retention to apply. Absent: none. */
  readonly rules?: RulesToApply | undefined;
  /** Number of segments that the unit has built before; 0 if absent. */
  readonly firstNumber?: number | undefined;
  /** Fraction of the time to work in. The rest is spent waiting, after each row group. */
  readonly share: number;
}

/** Rules of retention. A record is removed that matches all predicates of one of them. Its position stays. */
export interface RulesToApply {
  /** The agent's current fields, which the predicates are about. */
  readonly schema: Schema;
  readonly filters: readonly (readonly Predicate[])[];
  readonly marks: readonly string[];
}

/** Where a rewrite reads and writes, and who encodes its row groups. */
export interface RewritePlace {
  readonly directory: Directory;
  readonly workers: WorkerPool;
  readonly signal?: AbortSignal | undefined;
  /** Footers to use for files whose own footer cannot be read, by path relative to the agent's folder. */
  readonly footers?: ReadonlyMap<string, SegmentFooter> | undefined;
}

/**
 * Writes the live rows of `segments`, in order of position, as new segments in their final place. They become part of the archive once a
 * manifest names them. Where rules were to be applied and no row matches, nothing is written, and the segments are returned. Throws `DamageError`, `cancelled`, `not_found` if a segment has been replaced and removed meanwhile, and errors of
 * the disk. After an error the files are removed when the unit ends.
 */
export async function rewriteSegments(
  { directory, workers, signal, footers }: RewritePlace,
  job: RewriteJob,
): Promise<readonly SegmentEntry[]> {
  const pool = new BufferPool(heldBytesMax);
  const sources: SealedSegment[] = [];
  const { agent, id, schemaVersion, codec, segments, rules } = job;
  const { keepUntilMs, ruled: before = [] } = segments[0]!;
  const applied = before.filter((mark) => segments.every(({ ruled }) => ruled?.includes(mark)));
  const ruled = [...new Set([...applied, ...(rules?.marks ?? [])])];
  const replaces = segments.map(({ file }) => file);
  const removed = new Coverage();
  for (const run of job.removed ?? []) removed.add(run);
  const pause = pacer(job.share);
  let rowGroups: DecodedRowGroups | undefined;
  let merged: MergedSegments | undefined;
  try {
    const gone = new Map<RowGroup, Uint8Array>();
    let matches = 0;
    const runs: SnapshotRun[] = [];
    for (const entry of job.segments) {
      const path = `${job.agent}/${entry.file}`;
      const footer = footers?.get(entry.file);
      const segment = new SealedSegment(directory, path, entry, job.schema, pool, footer);
      sources.push(segment);
      const own = segment.rowGroups(job.schema);
      for (const run of runsOfSegment(entry, own))
        for (const left of removed.missing(run)) runs.push({ ...run, ...left });
      const shown = rules === undefined ? [] : segment.rowGroups(rules.schema);
      for (const [i, rowGroup] of own.entries()) {
        const hidden = await hiddenRows(rowGroup);
        if (hidden !== null) gone.set(rowGroup, hidden);
        if (rules === undefined) continue;
        const bits = hidden ?? new Uint8Array(bitmapBytes(rowGroup.rows));
        const count = await addMatches(bits, shown[i]!, rules);
        if (count > 0) gone.set(rowGroup, bits);
        matches += count;
        await pause();
      }
    }
    if (rules !== undefined && matches === 0) return segments.map((entry) => ({ ...entry, ruled }));
    const schema = gone.size === 0 ? job.schema : withRemoved(job.schema);
    const target = { directory, workers, agent, id, schema, schemaVersion, codec, replaces, keepUntilMs };
    merged = new MergedSegments({ ...target, firstNumber: job.firstNumber ?? 0 });
    rowGroups = new DecodedRowGroups(job.schema, pool, gone);
    runs.sort(compareRuns);
    rowGroups.count(runs);
    for (const run of runs) {
      if (signal?.aborted) throw new LogstrataError('cancelled', 'compaction was stopped');
      const rows = await rowGroups.take(run.rowGroup, run.firstRow, run.rows);
      if (!(await merged.add(rows, run.partition, run.firstOrdinal))) continue;
      rowGroups.releaseTaken(merged.hasPending ? run.rowGroup : undefined);
      await pause();
    }
    const written = await merged.finish();
    return ruled.length === 0 ? written : written.map((entry) => ({ ...entry, ruled }));
  } finally {
    await merged?.abort();
    rowGroups?.release();
    for (const source of sources) source.close();
    pool.close();
  }
}

async function hiddenRows(rowGroup: RowGroup): Promise<Uint8Array | null> {
  if (rowGroup.hides !== true) return null;
  return (await rowGroup.open()).hidden!(newReadCounters(), { use: 'once', neverWaits: true });
}

/** Adds the rows of a row group that match a rule to `bits`. Returns how many there are. */
async function addMatches(bits: Uint8Array, rowGroup: RowGroup, rules: RulesToApply): Promise<number> {
  const { rows } = rowGroup;
  let count = 0;
  for (const predicates of rules.filters) {
    const prepared = preparePredicates({ limit: rows, predicates }, rules.schema);
    const work = { stats: newScanStats(), pace: new Pace(undefined), threads: null };
    const filter = new RowGroupFilter(rules.schema, prepared, work);
    const selection = await filter.look(rowGroup, { firstRow: 0, endRow: rows, units: 1 });
    count += countInRange(selection, { firstRow: 0, rows });
    if (selection.kind === 'all') setRange(bits, 0, rows);
    if (selection.kind === 'bits') orRange(bits, selection.bits, 0, rows);
  }
  return count;
}

/** Returns a function that waits so long that the time since its last call is `share` of the total. */
function pacer(share: number): () => Promise<void> {
  let since = performance.now();
  return async () => {
    const workedMs = performance.now() - since;
    if (share < 1) await delay(workedMs * (1 / share - 1));
    since = performance.now();
  };
}

/** Decoded row groups. Each is kept as long as runs still need its rows, or its rows have not been encoded. */
class DecodedRowGroups {
  private readonly open = new Map<RowGroup, HeldColumns>();
  private readonly rowsLeft = new Map<RowGroup, number>();
  private readonly counters = newReadCounters();

  constructor(
    private readonly schema: Schema,
    private readonly pool: BufferPool,
    /** The removed rows of row groups that have some. If any has, each gets a column that marks them. */
    private readonly gone: ReadonlyMap<RowGroup, Uint8Array>,
  ) {}

  /** Registers the runs that are to be read. */
  count(runs: readonly SnapshotRun[]): void {
    for (const { rowGroup, rows } of runs)
      this.rowsLeft.set(rowGroup, (this.rowsLeft.get(rowGroup) ?? 0) + rows);
  }

  async take(rowGroup: RowGroup, from: number, rows: number): Promise<BatchRows> {
    const { columns } = this.open.get(rowGroup) ?? (await this.decode(rowGroup));
    this.rowsLeft.set(rowGroup, this.rowsLeft.get(rowGroup)! - rows);
    return { batch: { length: rowGroup.rows, columns }, from, to: from + rows };
  }

  private async decode(rowGroup: RowGroup): Promise<HeldColumns> {
    const { columns, release } = await allColumns(rowGroup, this.schema.fields.length, this.counters);
    const decoded = { columns: this.gone.size === 0 ? columns : this.marked(rowGroup, columns), release };
    this.open.set(rowGroup, decoded);
    // No column is read twice, so the pool need not keep it.
    this.pool.evict('');
    return decoded;
  }

  /** Makes all values of removed rows null, except the time that places them, and adds the column that marks them. */
  private marked(rowGroup: RowGroup, columns: readonly Column[]): readonly Column[] {
    const { rows } = rowGroup;
    const gone = this.gone.get(rowGroup) ?? new Uint8Array(bitmapBytes(rows));
    const placement = placementField(this.schema);
    const left = columns.map((column, i) => (i === placement ? column : withNulls(column, gone)));
    const values = new BigInt64Array(rows);
    for (let row = 0; row < rows; row++) if (isValid(gone, row)) values[row] = 1n;
    return [...left, { kind: 'int64', length: rows, values, validity: gone }];
  }

  /** Frees the row groups from which all rows were taken, except one whose last rows are not encoded yet. */
  releaseTaken(except: RowGroup | undefined): void {
    for (const [rowGroup, held] of this.open) {
      if (rowGroup === except || this.rowsLeft.get(rowGroup)! > 0) continue;
      this.open.delete(rowGroup);
      held.release();
    }
  }

  /** Frees all row groups. */
  release(): void {
    for (const held of this.open.values()) held.release();
    this.open.clear();
  }
}
