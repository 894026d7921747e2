import { compareRuns } from '../store/manifest/run-list.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { BatchRows } from '../columns/take.js';
import { allColumns } from './all-columns.js';
import { LogstrataError } from '../core/errors.js';
import { heldBytesMax } from '../core/limits.js';
import type { HeldColumns, RowGroup, SnapshotRun } from '../store/reading/snapshot.js';
import type { Schema } from '../core/schema.js';
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
  /** Number of segments that the unit has built before; 0 if absent. */
  readonly firstNumber?: number | undefined;
  /** Fraction of the time to work in. The rest is spent waiting, after each row group. */
  readonly share: number;
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
 * manifest names them. Throws `DamageError`, `cancelled`, `not_found` if a segment has been replaced and removed meanwhile, and errors of
 * the disk. After an error the files are removed when the unit ends.
 */
export async function rewriteSegments(
  { directory, workers, signal, footers }: RewritePlace,
  job: RewriteJob,
): Promise<readonly SegmentEntry[]> {
  const pool = new BufferPool(heldBytesMax);
  const rowGroups = new DecodedRowGroups(job.schema, pool);
  const sources: SealedSegment[] = [];
  const { agent, id, schema, schemaVersion, codec, segments } = job;
  const { keepUntilMs } = segments[0]!;
  const replaces = segments.map(({ file }) => file);
  const target = { directory, workers, agent, id, schema, schemaVersion, codec, replaces, keepUntilMs };
  const merged = new MergedSegments({ ...target, firstNumber: job.firstNumber ?? 0 });
  const removed = new Coverage();
  for (const run of job.removed ?? []) removed.add(run);
  const pause = pacer(job.share);
  try {
    const runs: SnapshotRun[] = [];
    for (const entry of job.segments) {
      const path = `${job.agent}/${entry.file}`;
      const footer = footers?.get(entry.file);
      const segment = new SealedSegment(directory, path, entry, job.schema, pool, footer);
      sources.push(segment);
      for (const run of runsOfSegment(entry, segment.rowGroups(job.schema)))
        for (const left of removed.missing(run)) runs.push({ ...run, ...left });
    }
    runs.sort(compareRuns);
    rowGroups.count(runs);
    for (const run of runs) {
      if (signal?.aborted) throw new LogstrataError('cancelled', 'compaction was stopped');
      const rows = await rowGroups.take(run.rowGroup, run.firstRow, run.rows);
      if (!(await merged.add(rows, run.partition, run.firstOrdinal))) continue;
      rowGroups.releaseTaken(merged.hasPending ? run.rowGroup : undefined);
      await pause();
    }
    return await merged.finish();
  } finally {
    await merged.abort();
    rowGroups.release();
    for (const source of sources) source.close();
    pool.close();
  }
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
    const decoded = await allColumns(rowGroup, this.schema.fields.length, this.counters);
    this.open.set(rowGroup, decoded);
    // No column is read twice, so the pool need not keep it.
    this.pool.evict('');
    return decoded;
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
