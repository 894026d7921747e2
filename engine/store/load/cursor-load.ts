import type { RecordBatch } from '../../columns/column.js';
import { dayNumber, formatCursor, hourMs, importedPartition, partitionOfTime } from '../../core/cursor.js';
import { LogstrataError } from '../../core/errors.js';
import { everyStep } from '../../core/waiting.js';
import { ordinalMax, rowGroupRowsMax, runsOfFileMax } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { Codec } from '../../parquet/compression.js';
import type { Directory } from '../disk/directory.js';
import {
  resultOf,
  type Committer,
  type CursorSession,
  type LoadExtras,
  type LoadResult,
} from '../manifest/commit.js';
import { placementTimes } from '../manifest/placement.js';
import type { AgentState } from '../reading/agent-state.js';
import type { SnapshotRun, SnapshotRuns } from '../reading/snapshot.js';
import { MergedSegments } from './segment-builder.js';

/** What a load of records with cursors depends on. */
export interface CursorLoadContext {
  readonly directory: Directory;
  readonly state: AgentState;
  readonly committer: Committer;
  readonly now: () => number;
  readonly workers: WorkerPool;
  readonly codec: Codec;
  /** Refreshes the state to the newest committed one. */
  readonly refresh: () => Promise<void>;
}

/**
 * A load of records that bring their cursors with them (see `CursorSession`). The records keep the order in which they come, whatever their
 * times, and get segments of their own. A segment ends where a new day begins, because retention removes such segments as a whole, by their
 * times.
 */
export class CursorLoad implements CursorSession {
  readonly schema: Schema;
  readonly nextOrdinal: number;
  private readonly schemaVersion: number;
  private readonly nowMs: number;
  private readonly segments: MergedSegments;
  private last: number;
  private runs = 0;
  private records = 0;
  private previousTimeMs: number | null = null;
  private newestMs = 0;
  /** Day of the newest record of the current segment; −1 for none. */
  private day = -1;
  private segmentRows = 0;
  private isOpen = true;

  private constructor(
    private readonly context: CursorLoadContext,
    private readonly id: string,
  ) {
    const { directory, state, committer, workers, codec } = context;
    this.schema = committer.schema;
    this.schemaVersion = committer.schemaVersion;
    this.nowMs = context.now();
    this.nextOrdinal = state.values.nextOrdinal(importedPartition);
    this.last = this.nextOrdinal - 1;
    const { schema, schemaVersion } = this;
    const target = { directory, workers, agent: state.agent, id, schema, schemaVersion, codec };
    this.segments = new MergedSegments({ ...target, replaces: [] });
  }

  static async begin(context: CursorLoadContext): Promise<CursorLoad> {
    await context.refresh();
    if (context.state.damage !== undefined) throw context.state.damage;
    return new CursorLoad(context, await context.committer.begin());
  }

  async append(batch: RecordBatch, ordinals: Float64Array): Promise<void> {
    if (!this.isOpen) throw new LogstrataError('closed', 'this load has ended');
    if (batch.length === 0) return;
    const part = { rows: batch.length, previousTimeMs: this.previousTimeMs };
    const timesMs = placementTimes(this.schema, batch, this.nowMs, [part]);
    this.previousTimeMs = timesMs.at(-1)!;
    const newestMs = timesMs.reduce((newest, timeMs) => Math.max(newest, timeMs), 0);
    this.newestMs = Math.max(this.newestMs, newestMs);
    this.refuseEarlier();
    await this.beginDay(dayNumber(partitionOfTime(newestMs)));
    for (let row = 0; row < batch.length;) {
      const end = endOfRun(ordinals, row);
      this.countRun(ordinals[row]!, ordinals[end - 1]!);
      await this.segments.add({ batch, from: row, to: end }, importedPartition, ordinals[row]!);
      row = end;
    }
    this.records += batch.length;
    this.segmentRows += batch.length;
  }

  /** Begins a new segment with a new day, unless the current one is small: a small segment for each day would not be worthwhile. */
  private async beginDay(day: number): Promise<void> {
    if (day > this.day && this.segmentRows >= rowGroupRowsMax) {
      await this.segments.cut();
      this.segmentRows = 0;
      this.day = day;
    }
    this.day = Math.max(this.day, day);
  }

  private countRun(first: number, last: number): void {
    if (first <= this.last || last > ordinalMax) {
      const cursor = formatCursor({ partition: importedPartition, ordinal: Math.min(first, ordinalMax) });
      throw new LogstrataError('invalid', `the cursor ${cursor} is not greater than the one before it`);
    }
    if (first > this.last + 1) this.runs++;
    this.last = last;
    if (this.runs <= runsOfFileMax) return;
    throw new LogstrataError(
      'limit',
      `the cursors have more than ${runsOfFileMax} gaps, the maximum. Nothing was stored`,
    );
  }

  /**
   * Throws `conflict` if the agent has other records that are older: the cursors of all other records sort after those of imported ones, so
   * cursors would no longer be in order of time.
   */
  private refuseEarlier(): void {
    const { state } = this.context;
    const snapshot = state.snapshot();
    const first = firstOfOthers(snapshot.runs);
    snapshot.release();
    if (first === undefined || first.partition >= partitionOfTime(this.newestMs)) return;
    const shown = (timeMs: number): string => `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
    throw new LogstrataError(
      'conflict',
      `agent ${state.agent} has records from ${shown(first.partition * hourMs)} on, but the imported ones continue until ${shown(this.newestMs)}: ` +
        'their cursors would come before those of earlier records. Import into a data folder without such records of the agent, ' +
        'before it is collected there. Nothing was stored',
    );
  }

  async commit({
    checkpoints,
    counters,
    check,
  }: Pick<LoadExtras, 'checkpoints' | 'counters' | 'check'>): Promise<LoadResult> {
    this.isOpen = false;
    const { committer, state, refresh } = this.context;
    const segments = await this.segments.finish();
    // Nobody else can commit after `reserve`, so these checks still hold when the segments are published.
    await committer.reserve(this.id, []);
    await refresh();
    this.refuseEarlier();
    if (state.values.nextOrdinal(importedPartition) !== this.nextOrdinal) {
      const message = `another process imported records of agent ${state.agent} in the meantime: nothing was stored`;
      throw new LogstrataError('conflict', message);
    }
    await check?.();
    await committer.publish(this.id, {
      segments,
      removes: [],
      checkpoints,
      rejected: [],
      counters: { ...counters, records: this.records, rejected: 0 },
    });
    await this.abort();
    return resultOf(this.records, segments);
  }

  async abort(): Promise<void> {
    this.isOpen = false;
    await everyStep([() => this.segments.abort(), () => this.context.committer.end(this.id)]);
  }
}

/** Index after the last of the consecutive ordinals that begin at `row`. */
function endOfRun(ordinals: Float64Array, row: number): number {
  let end = row + 1;
  while (end < ordinals.length && ordinals[end] === ordinals[end - 1]! + 1) end++;
  return end;
}

/** The first run of records that were not imported. */
function firstOfOthers(runs: SnapshotRuns): SnapshotRun | undefined {
  for (const run of runs) if (run.partition !== importedPartition) return run;
  return undefined;
}
