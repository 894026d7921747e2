import { setImmediate } from 'node:timers/promises';
import { assert } from '../../core/errors.js';
import { dayNumber, hourMs, partitionOfTime } from '../../core/cursor.js';
import { everyStep } from '../../core/waiting.js';
import {
  finishingDepthMax,
  rowGroupBytesMax,
  rowGroupRowsMax,
  segmentRowGroupsMax,
  workerRowsMin,
} from '../../core/limits.js';
import { withoutRemoved, type Schema } from '../../core/schema.js';
import type { Column } from '../../columns/column.js';
import { countRange } from '../../kernels/bitmap.js';
import { dropInOrder, finishInOrder, mapInOrder, type Pending } from '../../workers/in-order.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { type PartitionStart, buildingPath, moveIntoPlace, segmentFile } from '../manifest/commit.js';
import {
  gatherBatch,
  gatheredBatchBytesMax,
  sliceBatch,
  slicesOf,
  wholeBatches,
  type BatchRows,
  type RowSlices,
} from '../../columns/take.js';
import { packedBytes, packSteps, unpackBatch } from '../../columns/packed-batch.js';
import { leaseMemory } from '../../core/memory-lease.js';
import type { Directory } from '../disk/directory.js';
import { encodeInTurn, encodeOnPool, type LentRowGroup } from '../sealed/encode-task.js';
import { placeRuns, type PageSlice, GatheredRows } from './gathered-rows.js';
import { addRun, type Run, type SegmentEntry } from '../manifest/manifest.js';
import type { EncodedRowGroup } from '../sealed/row-group-encoder.js';
import { SegmentWriter, type WrittenSegment } from '../sealed/sealed-segment-writer.js';
import { rowsBefore } from './sorted-page.js';
import type { SortedPage } from '../disk/spill.js';
import type { StreamedTimes } from './streamed-times.js';
import type { Codec } from '../../parquet/compression.js';

/** Where segments are built, and by whom. */
export interface SegmentTarget {
  readonly directory: Directory;
  readonly workers: WorkerPool;
  readonly agent: string;
  /** The unit of work that builds the segments. */
  readonly id: string;
  readonly schema: Schema;
  readonly codec: Codec;
  /** Number of segments that the unit has built before these; 0 if absent. */
  readonly firstNumber?: number | undefined;
}

/** A segment whose rows are encoded or written, but whose footer is not. */
interface OpenSegment {
  /** Undefined until the first row group is written. */
  writer: SegmentWriter | undefined;
  readonly number: number;
  readonly path: string;
  readonly day: number;
  /** The runs of its rows. While positions are not assigned, each partition's ordinals begin at 1. */
  readonly runs: Run[];
  rowGroups: number;
  /** Number of removed rows in each partition, of a segment with a column for them. */
  readonly removed: Map<number, number>;
  /** If the first row group is the only one, the number of its runs; else null. Late rows may still split its runs. */
  singleGroupRuns: number | null;
}

/** A segment that is complete, but not in its final place. */
interface CompleteSegment {
  readonly written: WrittenSegment & Pick<SegmentEntry, 'removed'>;
  readonly path: string;
  readonly file: string;
}

/** Writes the row groups of a series of segments. They are encoded on the threads of the pool and written in order. */
abstract class SegmentBuilder {
  protected readonly segments: OpenSegment[] = [];
  private readonly encoding: Pending[] = [];
  private written: OpenSegment | undefined;
  /** Whether the rows have a column that marks the removed ones. */
  protected readonly marksRemoved: boolean;

  /** @param depth number of row groups that are encoded while the next one is gathered */
  constructor(
    protected readonly target: SegmentTarget,
    private readonly depth = target.workers.depth,
  ) {
    this.marksRemoved = withoutRemoved(target.schema) !== target.schema;
  }

  /** Begins the next segment. */
  protected begin(day: number): OpenSegment {
    const { agent, id, firstNumber = 0 } = this.target;
    const number = firstNumber + this.segments.length;
    const path = buildingPath(agent, id, number);
    const begun = { writer: undefined, runs: [], rowGroups: 0, removed: new Map(), singleGroupRuns: null };
    const segment: OpenSegment = { ...begun, number, path, day };
    this.segments.push(segment);
    return segment;
  }

  /** Has a row group encoded ahead, and written when its turn comes. */
  protected async encode(segment: OpenSegment, encode: () => Promise<LentRowGroup>): Promise<void> {
    segment.rowGroups++;
    await encodeInTurn(this.encoding, this.depth, encode, (encoded) => this.write(segment, encoded));
  }

  private async write(segment: OpenSegment, encoded: EncodedRowGroup): Promise<void> {
    if (segment.writer === undefined) {
      // Only the current segment keeps its file open, because the file of a sparse agent may span years of days.
      await this.written?.writer?.endRows();
      const { directory, schema, codec } = this.target;
      const { singleGroupRuns } = segment;
      segment.writer = await SegmentWriter.create(directory, segment.path, schema, {
        codec,
        singleGroupRuns,
      });
      this.written = segment;
    }
    await segment.writer.writeRowGroup(encoded);
  }

  /** Writes all row groups. No more can be added. */
  async flush(): Promise<void> {
    await finishInOrder(this.encoding);
    await this.written?.writer?.endRows();
  }

  /** Writes the positions and the footers, and makes the files durable. */
  protected complete(
    schemaVersion: number,
    runs: readonly (readonly Run[])[] = this.segments.map((segment) => segment.runs),
  ): Promise<CompleteSegment[]> {
    return mapInOrder(this.segments, finishingDepthMax, async ({ writer, path, number, ...segment }, i) => {
      const removed = this.marksRemoved ? { removed: [...segment.removed] } : {};
      const written = await writer!.finish(runs[i]!, schemaVersion, removed.removed);
      const file = segmentFile(this.target.id, number, runs[i]![0]!.partition);
      return { written: { ...written, ...removed }, path, file };
    });
  }

  /** Closes open files. They are removed with the unit's folder. */
  async abort(): Promise<void> {
    await dropInOrder(this.encoding);
    const steps = this.segments.map(
      ({ writer }) =>
        () =>
          writer?.abort(),
    );
    await everyStep(steps);
  }
}

/**
 * A first row group of at most this size is its segment's only one: it had room for more rows of the day, so it was ended by a new day or
 * by the end of the rows.
 */
const singleGroupRowsMax = 4096;
const singleGroupBytesMax = 1024 * 1024;

/**
 * Divides rows that ascend by time into row groups and segments. A row group ends at its size limits and at the end of its day; a segment
 * ends at the end of its day and at `segmentRowGroupsMax`. The `_cursor` columns and footers are written once the ordinals are known.
 */
export class SegmentAssembly extends SegmentBuilder {
  private gathered = new GatheredRows();
  private day = -1;
  /** Index of the first segment of late rows; −1 while there are none. */
  private lateFrom = -1;
  /** For each late row, the number of rows in time that precede it. */
  private readonly rowsBeforeLate: number[] = [];

  /** @param times stores the placement times of the rows; null if they will not be needed */
  constructor(
    target: SegmentTarget,
    private times: StreamedTimes | null = null,
    depth = target.workers.depth,
  ) {
    super(target, depth);
  }

  /** Number of files that were begun. */
  get files(): number {
    return this.segments.length;
  }

  /** Adds the next rows. They must not come before those added already. */
  async add(slices: readonly PageSlice[]): Promise<void> {
    for (const { page, from, to } of slices) {
      for (let row = from; row < to;) {
        const end = this.take(page, row, to);
        if (end < 0) await this.endRowGroup();
        else row = end;
      }
    }
  }

  /** Adds rows as far as the current row group has room for them, and returns where it stopped; −1 if the row group has to be ended first. */
  private take(page: SortedPage, from: number, to: number): number {
    const { gathered } = this;
    const day = dayNumber(partitionOfTime(page.timesMs[from]!));
    if (gathered.rows === 0) this.day = day;
    const rowBytes = page.bytes / page.batch.length;
    const room = Math.min(
      rowGroupRowsMax - gathered.rows,
      Math.max(gathered.rows === 0 ? 1 : 0, Math.floor((rowGroupBytesMax - gathered.bytes) / rowBytes)),
    );
    if (day !== this.day || room === 0) return -1;
    const end = rowsBefore(page.timesMs, (day + 1) * 24 * hourMs, from, Math.min(to, from + room));
    gathered.add(page, from, end);
    return end;
  }

  private async endRowGroup(): Promise<void> {
    const { gathered } = this;
    const { schema, codec, workers } = this.target;
    if (gathered.rows === 0) return;
    this.gathered = new GatheredRows();
    const segment = this.segmentOfDay();
    const timesMs = gathered.timesMs();
    countPartitions(segment.runs, timesMs);
    const isSmall = gathered.rows <= singleGroupRowsMax && gathered.bytes <= singleGroupBytesMax;
    segment.singleGroupRuns = isSmall && segment.rowGroups === 0 ? segment.runs.length : null;
    if (this.lateFrom >= 0) await this.placeLate(timesMs);
    else await this.times?.add(timesMs);
    // The rows are gathered only when a thread is free for them, so that only rows being encoded are in memory twice.
    await this.encode(segment, async () => {
      const slices = workers.threads === 0 ? gathered.slices() : gathered.ownSlices(schema);
      const rowGroup = await encodeOnPool(workers, schema, codec, slices, gathered.lentRanges());
      gathered.release();
      return rowGroup;
    });
  }

  private async placeLate(timesMs: Float64Array): Promise<void> {
    assert(this.times !== null, 'late rows are placed among rows whose times were put aside');
    for (const count of await this.times.countBefore(timesMs)) this.rowsBeforeLate.push(count);
  }

  private segmentOfDay(): OpenSegment {
    const last = this.segments.length === this.lateFrom ? undefined : this.segments.at(-1);
    const isOpen = last !== undefined && last.day === this.day && last.rowGroups < segmentRowGroupsMax;
    return isOpen ? last : this.begin(this.day);
  }

  /**
   * Ends the rows in time; all rows added later are late. Late rows ascend among themselves, each follows the rows in time with the same
   * time, and they get segments of their own.
   */
  async beginLate(): Promise<void> {
    await this.endRowGroup();
    this.lateFrom = this.segments.length;
  }

  override async flush(): Promise<void> {
    await this.endRowGroup();
    await super.flush();
  }

  /**
   * Assigns the ordinals, completes the files and makes them durable.
   *
   * @returns the entries, with the final names relative to the agent's folder, and the current path of each file
   */
  async finish(
    starts: readonly PartitionStart[],
    schemaVersion: number,
  ): Promise<{ entry: SegmentEntry; path: string }[]> {
    const { segments, lateFrom, rowsBeforeLate } = this;
    const counts = segments.map(({ runs }) => runs.map(({ partition, rows }) => [partition, rows] as const));
    const split = lateFrom < 0 ? counts.length : lateFrom;
    const placed = placeRuns(counts.slice(0, split), counts.slice(split), rowsBeforeLate, starts);
    const complete = await this.complete(schemaVersion, [...placed.inTime, ...placed.late]);
    return complete.map(({ written, file, path }) => ({
      entry: { ...written, file, schemaVersion, replaces: [] },
      path,
    }));
  }

  /** Completes the segments with meaningless ordinals. They are never published: they are read back and their rows rewritten. */
  async finishUnplaced(schemaVersion: number): Promise<CompleteSegment[]> {
    await this.flush();
    return this.complete(schemaVersion);
  }
}

function countPartitions(runs: Run[], timesMs: Float64Array): void {
  for (let row = 0; row < timesMs.length;) {
    const partition = partitionOfTime(timesMs[row]!);
    const end = rowsBefore(timesMs, (partition + 1) * hourMs, row + 1);
    const last = runs.at(-1);
    const firstOrdinal = last?.partition === partition ? last.firstOrdinal + last.rows : 1;
    addRun(runs, { partition, firstOrdinal, firstRow: rowsIn(runs), rows: end - row });
    row = end;
  }
}

function rowsIn(runs: readonly Run[]): number {
  const last = runs.at(-1);
  return last === undefined ? 0 : last.firstRow + last.rows;
}

function rowsWithValue({ validity }: Column, from: number, to: number): number {
  return validity === null ? to - from : countRange(validity, from, to);
}

/** Where rows go that have their positions already. */
export interface MergeTarget extends SegmentTarget {
  readonly schemaVersion: number;
  /** Files that the new segments replace. */
  readonly replaces: readonly string[];
  readonly keepUntilMs?: number | undefined;
  /** Whether the rows stay where they are until the segments are finished. Many are then copied in steps, between which queries can run. */
  readonly rowsStay?: boolean;
}

/** Writes rows that come in order of position as new segments, each of one day. Imported records have positions without a day. */
export class MergedSegments extends SegmentBuilder {
  private pending: BatchRows[] = [];
  private pendingRows = 0;
  private pendingBytes = 0;
  /** The segment that the next row goes to; undefined for a new one. */
  private segment: OpenSegment | undefined;

  constructor(protected override readonly target: MergeTarget) {
    // Sealing takes one thread, and leaves the others to queries.
    super(target, target.rowsStay === true ? Math.min(1, target.workers.depth) : target.workers.depth);
  }

  /** Whether rows were added that are not encoded yet. */
  get hasPending(): boolean {
    return this.pendingRows > 0;
  }

  /**
   * Adds rows with consecutive ordinals. Their batch is read until the row group that they are in is encoded. Returns whether a row group was
   * filled and encoded.
   */
  async add(added: BatchRows, partition: number, ordinal: number): Promise<boolean> {
    const day = dayNumber(partition);
    if (this.segment !== undefined && this.segment.day !== day) await this.cut();
    let ended = false;
    for (let { from } = added; from < added.to;) {
      const { runs, removed } = (this.segment ??= this.begin(day));
      const firstOrdinal = ordinal + from - added.from;
      const rows = this.take({ ...added, from });
      addRun(runs, { partition, firstOrdinal, firstRow: rowsIn(runs), rows });
      const gone = this.marksRemoved ? rowsWithValue(added.batch.columns.at(-1)!, from, from + rows) : 0;
      if (gone > 0) removed.set(partition, (removed.get(partition) ?? 0) + gone);
      from += rows;
      if (this.pendingRows < rowGroupRowsMax && this.pendingBytes < rowGroupBytesMax) continue;
      await this.endRowGroup(false);
      ended = true;
    }
    return ended;
  }

  /** Takes the first of the rows, as many as the row group has room for, at least one. Returns how many. */
  private take({ batch, from, to: end }: BatchRows): number {
    const bytesTo = (to: number): number =>
      gatheredBatchBytesMax(slicesOf([{ batch, from, to }]), this.target.schema);
    let to = Math.min(end, from + rowGroupRowsMax - this.pendingRows);
    while (to > from + 1 && this.pendingBytes + bytesTo(to) > rowGroupBytesMax) to = (from + to) >>> 1;
    const last = this.pending.at(-1);
    if (last?.batch === batch && last.to === from) this.pending[this.pending.length - 1] = { ...last, to };
    else this.pending.push({ batch, from, to });
    this.pendingRows += to - from;
    this.pendingBytes += bytesTo(to);
    return to - from;
  }

  /** @param isLast whether the segment gets no more rows */
  private async endRowGroup(isLast: boolean): Promise<void> {
    const { segment } = this;
    if (segment === undefined || this.pendingRows === 0) return;
    const slices = slicesOf(this.pending);
    if (isLast && segment.rowGroups === 0) segment.singleGroupRuns = segment.runs.length;
    await this.encode(segment, () => this.encodeRows(slices));
    this.pending = [];
    this.pendingRows = 0;
    this.pendingBytes = 0;
    if (segment.rowGroups === segmentRowGroupsMax) this.segment = undefined;
  }

  private async encodeRows(slices: RowSlices): Promise<LentRowGroup> {
    const { workers, schema, codec, rowsStay } = this.target;
    // This thread uses the rows in place. Rows that move to another one must not be shared, so they are copied.
    if (workers.threads === 0) return encodeOnPool(workers, schema, codec, slices);
    const isRange = slices.fromOf.length === 1 && slices.rows >= workerRowsMin;
    const range = isRange ? sliceBatch(slices.pages[0]!, slices.fromOf[0]!, slices.toOf[0]!) : null;
    // Rows that are moved to a thread are new memory each time, which is freed only when the thread's garbage collector runs. Leased memory avoids that.
    const lease = range === null || rowsStay !== true ? null : leaseMemory(packedBytes(range));
    if (lease === null)
      return encodeOnPool(workers, schema, codec, wholeBatches([gatherBatch(slices, schema)]));
    try {
      for (const steps = packSteps(range!, lease.bytes, 0); steps.next().done !== true;) await setImmediate();
      const copy = wholeBatches([unpackBatch(lease.bytes, 0)]);
      return await encodeOnPool(workers, schema, codec, copy, [lease.range]);
    } finally {
      lease.free();
    }
  }

  /** Ends the current segment. Later rows go to another one. */
  async cut(): Promise<void> {
    await this.endRowGroup(true);
    this.segment = undefined;
  }

  /** Writes the remaining rows, moves the segments into place, and returns their entries. */
  async finish(): Promise<readonly SegmentEntry[]> {
    await this.cut();
    await this.flush();
    const { directory, agent, schemaVersion, replaces, keepUntilMs } = this.target;
    const complete = await this.complete(schemaVersion);
    // All segments are moved together at the end, to shorten the time during which other tools see both them and the segments that they replace.
    for (const { path, file } of complete) await moveIntoPlace(directory, agent, path, file);
    const kept = keepUntilMs === undefined ? {} : { keepUntilMs };
    return complete.map(({ written, file }) => ({ ...written, file, schemaVersion, replaces, ...kept }));
  }
}
