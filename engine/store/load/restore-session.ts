import { takeRows } from '../../columns/take.js';
import { hourMs, partitionOfTime } from '../../core/cursor.js';
import { LogstrataError } from '../../core/errors.js';
import { everyStep } from '../../core/waiting.js';
import { Coverage, type LostLoad } from '../manifest/coverage.js';
import { MergedSegments } from './segment-builder.js';
import type { Schema } from '../../core/schema.js';
import {
  type LoadBatch,
  type LoadExtras,
  type LoadResult,
  type LoadSession,
  buildingFolder,
  resultOf,
} from '../manifest/commit.js';
import { ExternalSort } from './external-sort.js';
import type { LoadContext } from './load-session.js';
import { LoadedRows } from '../manifest/loaded-rows.js';
import { noCounters, type SegmentEntry } from '../manifest/manifest.js';
import type { PageSlice } from './gathered-rows.js';
import { placementTimes } from '../manifest/placement.js';
import { rowsBefore, sortPage } from './sorted-page.js';
import { batchBytes } from '../../columns/column.js';

/**
 * A load that restores the lost records of an earlier one. It takes the same rows in the same order, determines the position that each row
 * had, and publishes the lost ones at their old positions. `commit` throws `invalid` if an hour with lost rows does not have the same rows
 * as before, and `conflict` if they are no longer lost. Nothing is kept then.
 */
export class RestoreUnit implements LoadSession {
  readonly schema: Schema;
  /** Always 0: the rejected lines of the earlier load are still in the archive. */
  readonly rejected = 0;
  private readonly schemaVersion: number;
  private readonly sort: ExternalSort;
  private readonly rows = new LoadedRows();
  private readonly previousMs = new Map<number, number>();
  private readonly wanted: ReadonlySet<number>;
  private isOpen = true;

  private constructor(
    private readonly context: LoadContext,
    private readonly id: string,
    private readonly lost: LostLoad,
  ) {
    const { directory, agent, committer } = context;
    this.schema = committer.schema;
    this.schemaVersion = committer.schemaVersion;
    this.sort = new ExternalSort(directory, `${buildingFolder(agent, id)}/runs`, this.schema);
    this.wanted = new Set(lost.runs.map(({ partition }) => partition));
  }

  static async begin(context: LoadContext, lost: LostLoad): Promise<RestoreUnit> {
    return new RestoreUnit(context, await context.committer.begin(), lost);
  }

  get records(): number {
    return this.lost.runs.reduce((sum, { rows }) => sum + rows, 0);
  }

  async append(
    batch: LoadBatch,
    source: number,
    previousTimeMs: number | null = null,
  ): Promise<number | null> {
    try {
      if (!this.isOpen) throw new LogstrataError('closed', 'this load has ended');
      const previous = this.previousMs.get(source) ?? previousTimeMs;
      if (batch.length === 0) return previous;
      const part = { rows: batch.length, previousTimeMs: previous };
      const timesMs = placementTimes(this.schema, batch, this.lost.load.nowMs, [part]);
      this.rows.add(timesMs);
      this.previousMs.set(source, timesMs.at(-1)!);
      await this.take(batch, timesMs);
      return timesMs.at(-1)!;
    } finally {
      batch.lease?.free();
    }
  }

  /** Keeps a copy of the rows in hours that have lost rows. */
  private async take(batch: LoadBatch, timesMs: Float64Array): Promise<void> {
    const rows: number[] = [];
    timesMs.forEach((timeMs, row) => {
      if (this.wanted.has(partitionOfTime(timeMs))) rows.push(row);
    });
    if (rows.length === 0) return;
    const taken = takeRows(batch, Uint32Array.from(rows));
    const times = Float64Array.from(rows, (row) => timesMs[row]!);
    await this.sort.add(sortPage({ batch: taken, timesMs: times, bytes: batchBytes(taken) }));
  }

  reject(): Promise<number> {
    return Promise.resolve(0);
  }

  async commit(_extras: LoadExtras, onProgress: (fraction: number) => void = () => {}): Promise<LoadResult> {
    this.isOpen = false;
    this.requireSameRows();
    const segments = await this.write();
    onProgress(1);
    await this.context.committer.publish(this.id, {
      segments,
      removes: [],
      restores: true,
      checkpoints: [],
      rejected: [],
      counters: noCounters,
    });
    await this.abort();
    return resultOf(this.records, segments);
  }

  /** Within an hour positions were assigned in order of time. So the position of a row is known only if the hour has exactly the same rows. */
  private requireSameRows(): void {
    const other = this.lost.load.runs.find((run) => this.wanted.has(run.partition) && !this.rows.isSame(run));
    if (other === undefined) return;
    const rows = this.rows.rowsOf(other.partition);
    const hour = new Date(other.partition * hourMs).toISOString();
    const now = rows === other.rows ? 'as many, but with other times' : `${rows}`;
    throw new LogstrataError(
      'invalid',
      `it gave ${other.rows} records of the hour from ${hour} when it was stored, but gives ${now} today, so the lost ones can't ` +
        `be identified, and nothing was restored. Has the file of agent ${this.context.agent} or the time zone changed since then? ` +
        `Load it again with the earlier ones`,
    );
  }

  /** Writes the lost rows, as segments of one day each. */
  private async write(): Promise<SegmentEntry[]> {
    const lost = new Coverage();
    for (const run of this.lost.runs) lost.add(run);
    const left = new Coverage();
    const next = new Map<number, number>();
    for (const run of this.lost.load.runs) {
      next.set(run.partition, run.firstOrdinal);
      for (const kept of lost.missing({ ...run, firstRow: 0 })) left.add(kept);
    }
    const { directory, workers, agent, codec } = this.context;
    const { id, schema, schemaVersion } = this;
    const target = { directory, workers, agent, id, schema, schemaVersion, codec, replaces: [] };
    const segments = new MergedSegments(target);
    try {
      for await (const slices of await this.sort.sorted()) {
        for (const slice of slices) await placeSlice(slice, next, left, segments);
      }
      const entries = await segments.finish();
      const { beyond } = this.lost.load;
      return entries.map((entry) =>
        beyond !== undefined && entry.runs[0]!.partition < beyond.below
          ? { ...entry, keepUntilMs: beyond.keepUntilMs }
          : entry,
      );
    } finally {
      await segments.abort();
    }
  }

  async abort(): Promise<void> {
    this.isOpen = false;
    await everyStep([() => this.sort.close(), () => this.context.committer.end(this.id)]);
  }
}

/** Passes on the rows of a slice that are lost, each with its old position. */
async function placeSlice(
  { page: { batch, timesMs }, from, to }: PageSlice,
  next: Map<number, number>,
  left: Coverage,
  segments: MergedSegments,
): Promise<void> {
  for (let row = from; row < to;) {
    const partition = partitionOfTime(timesMs[row]!);
    // The last partition also has times after its hour.
    const end = Math.min(to, Math.max(row + 1, rowsBefore(timesMs, (partition + 1) * hourMs)));
    const firstOrdinal = next.get(partition)!;
    next.set(partition, firstOrdinal + end - row);
    for (const run of left.missing({ partition, firstOrdinal, firstRow: row, rows: end - row })) {
      const rows = { batch, from: run.firstRow, to: run.firstRow + run.rows };
      await segments.add(rows, partition, run.firstOrdinal);
    }
    row = end;
  }
}
