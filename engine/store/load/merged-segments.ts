import {
  gatherBatch,
  gatheredBatchBytesMax,
  slicesOf,
  wholeBatches,
  type BatchRows,
} from '../../columns/take.js';
import { rowGroupBytesMax, rowGroupRowsMax, segmentRowGroupsMax } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import type { Directory } from '../disk/directory.js';
import { encodeInTurn, encodeOnPool } from '../sealed/encode-task.js';
import { addRun, type Run, type SegmentEntry } from '../manifest/manifest.js';
import { SegmentWriter } from '../sealed/sealed-segment-writer.js';
import { buildingPath, moveIntoPlace, segmentFile } from '../manifest/commit.js';
import { dropInOrder, finishInOrder, type Pending } from '../../workers/in-order.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import type { Codec } from '../../parquet/compression.js';

export interface MergeTarget {
  readonly directory: Directory;
  readonly workers: WorkerPool;
  readonly agent: string;
  /** The unit of work that builds the segments. */
  readonly id: string;
  /** Files that the new segments replace. */
  readonly replaces: readonly string[];
  readonly keepUntilMs: number | undefined;
  readonly schema: Schema;
  readonly schemaVersion: number;
  readonly codec: Codec;
  /** Number of segments that the unit has built before these; 0 if absent. */
  readonly firstNumber?: number | undefined;
}

/** Writes rows that come in order of position as new segments. All rows of a segment must be of one day, except for imported records. */
export class MergedSegments {
  private readonly entries: SegmentEntry[] = [];
  /** Current path of each finished segment, and its final name. */
  private readonly built: { readonly path: string; readonly file: string }[] = [];
  private pending: BatchRows[] = [];
  private pendingRows = 0;
  private pendingBytes = 0;
  private runs: Run[] = [];
  private segmentRows = 0;
  private rowGroups = 0;
  private writer: SegmentWriter | undefined;
  private path = '';
  private readonly encoding: Pending[] = [];

  constructor(private readonly target: MergeTarget) {}

  /** Whether rows were added that are not encoded yet. */
  get hasPending(): boolean {
    return this.pendingRows > 0;
  }

  /**
   * Adds rows with consecutive ordinals. Their batch is read until the row group that they are in is encoded. Returns whether a row group was
   * filled and encoded.
   */
  async add(added: BatchRows, partition: number, ordinal: number): Promise<boolean> {
    const { batch } = added;
    let ended = false;
    for (let { from } = added; from < added.to;) {
      const to = Math.min(added.to, from + rowGroupRowsMax - this.pendingRows);
      const rows = to - from;
      const firstOrdinal = ordinal + from - added.from;
      addRun(this.runs, { partition, firstOrdinal, firstRow: this.segmentRows, rows });
      const taken = { batch, from, to };
      this.pending.push(taken);
      this.pendingRows += rows;
      this.segmentRows += rows;
      this.pendingBytes += gatheredBatchBytesMax(slicesOf([taken]), this.target.schema);
      from = to;
      if (this.pendingRows < rowGroupRowsMax && this.pendingBytes < rowGroupBytesMax) continue;
      await this.endRowGroup(false);
      ended = true;
    }
    return ended;
  }

  /** Number of the current segment within the unit. */
  private get number(): number {
    return (this.target.firstNumber ?? 0) + this.entries.length;
  }

  /** @param isLast whether the segment gets no more rows */
  private async endRowGroup(isLast: boolean): Promise<void> {
    if (this.pendingRows === 0) return;
    const slices = slicesOf(this.pending);
    const { directory, agent, id, codec, schema, workers } = this.target;
    if (this.writer === undefined) {
      this.path = buildingPath(agent, id, this.number);
      const singleGroupRuns = isLast ? this.runs.length : null;
      this.writer = await SegmentWriter.create(directory, this.path, schema, { codec, singleGroupRuns });
    }
    const { writer } = this;
    await encodeInTurn(
      this.encoding,
      workers.depth,
      // Rows that move to a thread must not be shared, so they are copied. Rows that this thread encodes are used in place.
      () =>
        encodeOnPool(
          workers,
          schema,
          codec,
          workers.threads === 0 ? slices : wholeBatches([gatherBatch(slices, schema)]),
        ),
      (encoded) => writer.writeRowGroup(encoded),
    );
    this.rowGroups++;
    this.pending = [];
    this.pendingRows = 0;
    this.pendingBytes = 0;
    if (this.rowGroups === segmentRowGroupsMax) await this.endSegment();
  }

  private async endSegment(): Promise<void> {
    if (this.writer === undefined) return;
    await finishInOrder(this.encoding);
    const { id, schemaVersion, replaces, keepUntilMs } = this.target;
    const kept = keepUntilMs === undefined ? {} : { keepUntilMs };
    const written = await this.writer.finish(this.runs, schemaVersion);
    this.writer = undefined;
    const file = segmentFile(id, this.number, this.runs[0]!.partition);
    this.built.push({ path: this.path, file });
    this.entries.push({ ...written, file, schemaVersion, replaces, ...kept });
    this.runs = [];
    this.segmentRows = 0;
    this.rowGroups = 0;
  }

  /** Ends the current segment. Later rows go to another one. */
  async cut(): Promise<void> {
    await this.endRowGroup(true);
    await this.endSegment();
  }

  /** Writes the remaining rows, moves the segments into place, and returns their entries. */
  async finish(): Promise<readonly SegmentEntry[]> {
    await this.cut();
    const { directory, agent } = this.target;
    // All segments are moved together at the end, to shorten the time during which other tools see both them and the segments that they replace.
    for (const { path, file } of this.built) await moveIntoPlace(directory, agent, path, file);
    return this.entries;
  }

  /** Discards the current segment, if there is one. */
  async abort(): Promise<void> {
    await dropInOrder(this.encoding);
    await this.writer?.abort();
  }
}
