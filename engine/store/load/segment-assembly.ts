import { assert } from '../../core/errors.js';
import { dayNumber, hourMs, partitionOfTime } from '../../core/cursor.js';
import { everyStep } from '../../core/waiting.js';
import {
  finishingDepthMax,
  rowGroupBytesMax,
  rowGroupRowsMax,
  segmentRowGroupsMax,
} from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import { dropInOrder, finishInOrder, mapInOrder, type Pending } from '../../workers/in-order.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { type PartitionStart, buildingPath, segmentFile } from '../manifest/commit.js';
import type { Directory } from '../disk/directory.js';
import { encodeInTurn, encodeOnPool } from '../sealed/encode-task.js';
import { placeRuns, type PageSlice, GatheredRows } from './gathered-rows.js';
import type { Run, SegmentEntry } from '../manifest/manifest.js';
import type { EncodedRowGroup } from '../sealed/row-group-encoder.js';
import { SegmentWriter, type WrittenSegment } from '../sealed/sealed-segment-writer.js';
import { rowsBefore } from './sorted-page.js';
import type { SortedPage } from '../disk/spill.js';
import type { StreamedTimes } from './streamed-times.js';
import type { Codec } from '../../parquet/compression.js';

export interface AssemblyContext {
  readonly directory: Directory;
  readonly agent: string;
  /** The unit of work that builds the segments. */
  readonly unit: string;
  readonly schema: Schema;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

/** A segment whose rows are encoded or written but have no ordinals yet. */
interface UnfinishedSegment {
  /** Undefined until the first row group is written. */
  writer: SegmentWriter | undefined;
  readonly path: string;
  readonly day: number;
  /** Number of rows of each partition, ascending. */
  readonly counts: [partition: number, rows: number][];
  rowGroups: number;
  /** Whether the first row group is the only one. (The number of runs may still exceed that of `counts`, because late rows split runs.) */
  isSingleGroup: boolean;
}

/**
 * A first row group of at most this size is its segment's only one: it had room for more rows of the day, so it was ended by a new day or
 * by the end of the rows.
 */
const singleGroupRowsMax = 4096;
const singleGroupBytesMax = 1024 * 1024;

/**
 * Divides rows that ascend by time into row groups and segments. A row group ends at its size limits and at the end of its day; a segment
 * ends at the end of its day and at `segmentRowGroupsMax`. The `_cursor` columns and footers are written once the ordinals are known. Row
 * groups are encoded on the threads of the pool and written in order.
 */
export class SegmentAssembly {
  private readonly segments: UnfinishedSegment[] = [];
  private gathered = new GatheredRows();
  private day = -1;
  private readonly encoding: Pending[] = [];
  private written: UnfinishedSegment | undefined;
  /** Index of the first segment of late rows; −1 while there are none. */
  private lateFrom = -1;
  /** For each late row, the number of rows in time that precede it. */
  private readonly rowsBeforeLate: number[] = [];

  /**
   * @param firstFile number of the first file in the unit's folder
   * @param times stores the placement times of the rows; null if they will not be needed
   * @param depth number of row groups that are encoded while the next one is gathered
   */
  constructor(
    private readonly context: AssemblyContext,
    private readonly firstFile = 0,
    private times: StreamedTimes | null = null,
    private readonly depth = context.workers.depth,
  ) {}

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
    const { schema, codec, workers } = this.context;
    if (gathered.rows === 0) return;
    this.gathered = new GatheredRows();
    const segment = this.segmentOfDay();
    segment.rowGroups++;
    const timesMs = gathered.timesMs();
    countPartitions(segment.counts, timesMs);
    segment.isSingleGroup =
      gathered.rows <= singleGroupRowsMax && gathered.bytes <= singleGroupBytesMax && segment.rowGroups === 1;
    if (this.lateFrom >= 0) await this.placeLate(timesMs);
    else await this.times?.add(timesMs);
    // The rows are gathered only when a thread is free for them, so that only rows being encoded are in memory twice.
    await encodeInTurn(
      this.encoding,
      this.depth,
      async () => {
        const slices = workers.threads === 0 ? gathered.slices() : gathered.ownSlices(schema);
        const rowGroup = await encodeOnPool(workers, schema, codec, slices, gathered.lentRanges());
        gathered.release();
        return rowGroup;
      },
      (encoded) => this.write(segment, encoded),
    );
  }

  private async placeLate(timesMs: Float64Array): Promise<void> {
    assert(this.times !== null, 'late rows are placed among rows whose times were put aside');
    for (const count of await this.times.countBefore(timesMs)) this.rowsBeforeLate.push(count);
  }

  private segmentOfDay(): UnfinishedSegment {
    const last = this.segments.length === this.lateFrom ? undefined : this.segments.at(-1);
    if (last !== undefined && last.day === this.day && last.rowGroups < segmentRowGroupsMax) return last;
    const { agent, unit } = this.context;
    const path = buildingPath(agent, unit, this.firstFile + this.segments.length);
    const segment: UnfinishedSegment = {
      writer: undefined,
      path,
      day: this.day,
      counts: [],
      rowGroups: 0,
      isSingleGroup: false,
    };
    this.segments.push(segment);
    return segment;
  }

  private async write(segment: UnfinishedSegment, encoded: EncodedRowGroup): Promise<void> {
    if (segment.writer === undefined) {
      // Only the current segment keeps its file open, because the file of a sparse agent may span years of days.
      await this.written?.writer?.endRows();
      const { directory, schema, codec } = this.context;
      const singleGroupRuns = segment.isSingleGroup ? segment.counts.length : null;
      segment.writer = await SegmentWriter.create(directory, segment.path, schema, {
        codec,
        singleGroupRuns,
      });
      this.written = segment;
    }
    await segment.writer.writeRowGroup(encoded);
  }

  /**
   * Ends the rows in time; all rows added later are late. Late rows ascend among themselves, each follows the rows in time with the same
   * time, and they get segments of their own.
   */
  async beginLate(): Promise<void> {
    await this.endRowGroup();
    this.lateFrom = this.segments.length;
  }

  /** Writes the remaining rows. No more can be added. */
  async flush(): Promise<void> {
    await this.endRowGroup();
    await finishInOrder(this.encoding);
    await this.written?.writer?.endRows();
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
    const counts = segments.map((segment) => segment.counts);
    const split = lateFrom < 0 ? counts.length : lateFrom;
    const placed = placeRuns(counts.slice(0, split), counts.slice(split), rowsBeforeLate, starts);
    const runs = [...placed.inTime, ...placed.late];
    return mapInOrder(segments, finishingDepthMax, async ({ writer, path, counts: [first] }, i) => {
      const written = await writer!.finish(runs[i]!, schemaVersion);
      const file = segmentFile(this.context.unit, i, first![0]);
      return { entry: { ...written, file, schemaVersion, replaces: [] }, path };
    });
  }

  /** Completes the segments with meaningless ordinals. They are never published: they are read back and their rows rewritten. */
  async finishUnplaced(schemaVersion: number): Promise<{ written: WrittenSegment; path: string }[]> {
    await this.flush();
    const finished: { written: WrittenSegment; path: string }[] = [];
    for (const { writer, path, counts } of this.segments) {
      const runs: Run[] = [];
      let firstRow = 0;
      for (const [partition, rows] of counts) {
        runs.push({ partition, firstOrdinal: 1, firstRow, rows });
        firstRow += rows;
      }
      finished.push({ written: await writer!.finish(runs, schemaVersion), path });
    }
    return finished;
  }

  /** Closes open files. They are removed with the unit's folder. */
  async abort(): Promise<void> {
    await dropInOrder(this.encoding);
    await everyStep(
      this.segments.map(
        ({ writer }) =>
          () =>
            writer?.abort(),
      ),
    );
  }
}

function countPartitions(counts: [number, number][], timesMs: Float64Array): void {
  for (let row = 0; row < timesMs.length;) {
    const partition = partitionOfTime(timesMs[row]!);
    const end = rowsBefore(timesMs, (partition + 1) * hourMs, row + 1);
    addCount(counts, partition, end - row);
    row = end;
  }
}

function addCount(counts: [number, number][], partition: number, rows: number): void {
  const last = counts.at(-1);
  if (last !== undefined && last[0] === partition) last[1] += rows;
  else counts.push([partition, rows]);
}
