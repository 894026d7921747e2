import {
  rowGroupRowsMax,
  heldBytesMax,
  sortedPageRowsMax,
  finishingDepthMax,
  lateRowsMax,
  mergingDepthMax,
  rejectedBytesMaxDefault,
} from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import { mergeRuns, mergedPages } from './gathered-rows.js';
import { ascendAll, copyOfRows, onHeap, rowsBefore, slicePage, sortPage } from './sorted-page.js';
import { memoryRun, type SortedPage, type SortedRun } from '../disk/spill.js';
import { LogstrataError } from '../../core/errors.js';
import { everyStep } from '../../core/waiting.js';
import { mapInOrder } from '../../workers/in-order.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import {
  type LoadBatch,
  type LoadExtras,
  type LoadOptions,
  type LoadResult,
  type LoadSession,
  type RejectedLine,
  buildingFolder,
  type Committer,
  type PartitionCount,
  type PartitionStart,
  moveIntoPlace,
  resultOf,
} from '../manifest/commit.js';
import { extendRetention, type Extension } from '../manifest/retention-policy.js';
import type { Directory } from '../disk/directory.js';
import { ExternalSort } from './external-sort.js';
import { loadId } from '../manifest/removal.js';
import { LoadedRows } from '../manifest/loaded-rows.js';
import type { LoadEntry, RejectedEntry } from '../manifest/manifest.js';
import { placementTimes } from '../manifest/placement.js';
import { runOfSegments } from './read-back.js';
import { encodeRejectedLine, RejectedFile } from '../manifest/rejected-file.js';
import { SegmentAssembly, type SegmentTarget } from './segment-builder.js';
import { PageMemory } from '../disk/open-files.js';
import { batchBytes } from '../../columns/column.js';
import { StreamedTimes } from './streamed-times.js';
import type { Codec } from '../../parquet/compression.js';

/**
 * Buffers the latest rows of a load. In logs, rows come at most a little late. So when the window is full, its older half is almost
 * certainly in final order and can be written while the rest of the file is still being read.
 */
class SortWindow {
  /** The rows of each page ascend. The pages before `#freshFrom` also ascend from one to the next. */
  #pages: SortedPage[] = [];
  #freshFrom = 0;
  #rows = 0;
  #bytes = 0;
  #releasedMs = -Infinity;

  constructor(private readonly schema: Schema) {}

  /** Time (ms) of the last released row. An earlier row is too late for the window. */
  get releasedMs(): number {
    return this.#releasedMs;
  }

  /** Whether the window has twice the rows of a row group, or `heldBytesMax`. */
  get isFull(): boolean {
    return this.#rows >= 2 * rowGroupRowsMax || this.#bytes >= heldBytesMax;
  }

  /** Adds a page whose rows ascend and are not before `releasedMs`. */
  add(page: SortedPage): void {
    this.#pages.push(page);
    this.#rows += page.batch.length;
    this.#bytes += page.bytes;
  }

  /** Releases the first rows in order of time, until half of the window is left. */
  async release(): Promise<SortedPage[]> {
    return this.#releaseDownTo(rowGroupRowsMax, heldBytesMax / 2);
  }

  /** Releases all rows in order of time. */
  async releaseAll(): Promise<SortedPage[]> {
    return this.#releaseDownTo(0, 0);
  }

  async #releaseDownTo(rowsKept: number, bytesKept: number): Promise<SortedPage[]> {
    await this.#order();
    let count = 0;
    while (count < this.#pages.length && (this.#rows > rowsKept || this.#bytes > bytesKept)) {
      const page = this.#pages[count++]!;
      this.#rows -= page.batch.length;
      this.#bytes -= page.bytes;
      this.#releasedMs = page.timesMs.at(-1)!;
    }
    this.#freshFrom -= count;
    return this.#pages.splice(0, count);
  }

  /** Sorts all pages into one order. Pages that are in order already are kept unchanged. */
  async #order(): Promise<void> {
    if (!ascendAll(this.#pages)) {
      const runs = runsOf(this.#pages, this.#freshFrom).map((pages, order) => memoryRun(pages, order));
      this.#pages = [];
      for await (const page of mergedPages(this.schema, mergeRuns(runs), sortedPageRowsMax)) {
        this.#pages.push(page);
      }
      this.#bytes = this.#pages.reduce((sum, page) => sum + page.bytes, 0);
    }
    this.#freshFrom = this.#pages.length;
  }
}

/** Groups the pages into ascending runs, in the order in which they came. */
function runsOf(pages: readonly SortedPage[], sorted: number): SortedPage[][] {
  const runs: SortedPage[][] = sorted === 0 ? [] : [pages.slice(0, sorted)];
  for (const page of pages.slice(sorted)) {
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1)!.timesMs.at(-1)! <= page.timesMs[0]!) last.push(page);
    else runs.push([page]);
  }
  return runs;
}

export interface LoadContext {
  readonly directory: Directory;
  readonly agent: string;
  readonly committer: Committer;
  readonly now: () => number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
  /** The agent's retention period (ms); null for no limit. */
  readonly periodMs: number | null;
  /** Highest partition that holds a record of the agent, as far as this process knows; 0 for none. */
  readonly highestPartition: () => number;
  /** Bytes of the agent's rejected lines, as far as this process knows. */
  readonly rejectedBytes: () => number;
}

/**
 * A load session: sorts a unit's rows by time into sealed segments. While rows are nearly in order, as those of logs are, a window puts
 * them in order, and row groups are written while the rest is still being read. Rows that belong before rows already written are late and
 * go through an external sort. If they are few, they get segments of their own; once there are more than `lateRowsMax`, everything is
 * sorted externally, and what was written is read back. `commit` publishes the segments in one manifest.
 */
export class LoadUnit implements LoadSession {
  readonly schema: Schema;
  /** Schema version when the load began. The agent's fields may change meanwhile. */
  private readonly schemaVersion: number;
  /**
   * The clock (ms) when the load began. Records without a time are placed by it. It is stored, so that a restoring load places them in the
   * same way.
   */
  private readonly nowMs: number;
  private readonly rows = new LoadedRows();
  private readonly folder: string;
  private readonly previousMs = new Map<number, number>();
  private readonly target: SegmentTarget;
  private readonly sort: ExternalSort;
  private readonly times: StreamedTimes;
  private readonly assemblies: SegmentAssembly[] = [];
  /** Null once too many rows were late. */
  private window: SortWindow | null;
  /** Lent memory of batches that is still needed. */
  private readonly lent = new Set<PageMemory>();
  private lateCount = 0;
  private rejectedFile: RejectedFile | undefined;
  private rejectedCount = 0;
  /** Bytes left for rejected lines. */
  private rejectedRoomBytes: number;
  private recordCount = 0;
  private state: 'open' | 'committing' | 'ended' = 'open';

  private constructor(
    private readonly context: LoadContext,
    private readonly id: string,
    private readonly options: LoadOptions,
  ) {
    const { directory, agent, committer, workers } = context;
    const { schema } = committer;
    this.nowMs = context.now();
    this.schema = schema;
    this.schemaVersion = committer.schemaVersion;
    this.folder = buildingFolder(agent, id);
    this.target = { directory, agent, id, schema, codec: context.codec, workers };
    this.sort = new ExternalSort(directory, `${this.folder}/runs`, schema);
    this.times = new StreamedTimes(() => this.sort.spill());
    this.window = new SortWindow(schema);
    const { takes, rejectedBytesMax = rejectedBytesMaxDefault } = options;
    // Lines of a file that the load takes over are in the archive already, so they are not limited again.
    this.rejectedRoomBytes = takes === undefined ? rejectedBytesMax - context.rejectedBytes() : Infinity;
  }

  static async begin(context: LoadContext, options: LoadOptions = {}): Promise<LoadUnit> {
    const id = await context.committer.begin();
    return new LoadUnit(context, id, options);
  }

  get records(): number {
    return this.recordCount;
  }

  get rejected(): number {
    return this.rejectedCount;
  }

  async append(
    batch: LoadBatch,
    source: number,
    previousTimeMs: number | null = null,
  ): Promise<number | null> {
    if (this.state !== 'open') batch.lease?.free();
    this.assertOpen();
    const memory = this.memoryOf(batch);
    const previous = this.previousMs.get(source) ?? previousTimeMs;
    if (batch.length === 0) return previous;
    const timesMs = placementTimes(this.schema, batch, this.nowMs, [
      { rows: batch.length, previousTimeMs: previous },
    ]);
    const lastTimeMs = timesMs[batch.length - 1]!;
    this.previousMs.set(source, lastTimeMs);
    this.recordCount += batch.length;
    this.rows.add(timesMs);
    const page = { batch, timesMs, bytes: batchBytes(batch) };
    await this.take(sortPage(memory === null ? page : { ...page, memory }));
    return lastTimeMs;
  }

  /** Tracks the lent memory of a batch until it is freed; null for a batch on the heap. */
  private memoryOf({ lease, length }: LoadBatch): PageMemory | null {
    if (lease === undefined) return null;
    const memory = new PageMemory(lease, length, (freed) => this.lent.delete(freed));
    this.lent.add(memory);
    return memory;
  }

  private async take(taken: SortedPage): Promise<void> {
    const { window } = this;
    if (window === null) return this.sort.add(onHeap(this.schema, taken));
    const late = rowsBefore(taken.timesMs, window.releasedMs);
    const page = late === 0 ? taken : onHeap(this.schema, taken);
    const rows = page.batch.length;
    if (late > 0) await this.sort.add(copyOfRows(this.schema, page, 0, late));
    if (late < rows) window.add(late === 0 ? page : slicePage(page, late, rows));
    this.lateCount += late;
    if (this.lateCount > lateRowsMax) {
      // The window's rows are added to the sort before any later ones. No late row has the same time as one of them, so equal times stay in order.
      for (const waiting of await window.releaseAll()) await this.sort.add(onHeap(this.schema, waiting));
      this.window = null;
    } else if (window.isFull) {
      await this.write(await window.release());
    }
  }

  /** Writes pages that come next in order of time. */
  private async write(pages: readonly SortedPage[]): Promise<void> {
    for (const page of pages) {
      await this.assembly().add([{ page, from: 0, to: page.batch.length }]);
    }
  }

  private assembly(): SegmentAssembly {
    if (this.assemblies.length === 0) {
      this.assemblies.push(new SegmentAssembly(this.target, this.times));
    }
    return this.assemblies.at(-1)!;
  }

  async reject(line: RejectedLine, roomBytes = Infinity): Promise<number> {
    this.assertOpen();
    this.rejectedCount++;
    if (Math.min(roomBytes, this.rejectedRoomBytes) <= 0) return 0;
    const text = encodeRejectedLine(line);
    if (text.length > roomBytes) return 0;
    this.rejectedRoomBytes -= text.length;
    if (this.rejectedRoomBytes < 0) return 0;
    this.rejectedFile ??= await RejectedFile.create(this.context.directory, `${this.folder}/rejected.jsonl`);
    await this.rejectedFile.add(text);
    return text.length;
  }

  private assertOpen(): void {
    if (this.state !== 'open') throw new LogstrataError('closed', 'this load has ended');
  }

  async commit(extras: LoadExtras, onProgress: (fraction: number) => void = () => {}): Promise<LoadResult> {
    this.assertOpen();
    this.state = 'committing';
    const { committer, directory, agent } = this.context;
    const { takes } = this.options;
    const assembly = await this.assemble(onProgress);
    await this.rejectedFile?.sync();
    const counts = this.rows.counts();
    const extension = this.extension(counts);
    const starts = await committer.reserve(this.id, counts);
    await extras.check?.();
    const finished = await assembly.finish(starts, this.schemaVersion);
    const segments = await mapInOrder(finished, finishingDepthMax, async ({ entry, path }) => {
      await moveIntoPlace(directory, agent, path, entry.file);
      const isOver = extension !== undefined && entry.runs[0]!.partition < extension.below;
      return isOver ? { ...entry, keepUntilMs: extension.keepUntilMs } : entry;
    });
    const rejected = await this.placeRejected();
    const load = this.entry(extras, starts, extension);
    await committer.publish(this.id, {
      segments,
      removes: [],
      checkpoints: extras.checkpoints,
      ...(load === undefined ? {} : { load }),
      rejected,
      takes,
      detaches: extras.detaches,
      // A line that was counted as rejected before now counts as a record, or is still rejected.
      counters: {
        ...extras.counters,
        records: this.recordCount,
        rejected: this.rejected - (takes?.lines ?? 0),
      },
    });
    await this.end();
    const id = load === undefined ? null : loadId(load);
    return { ...resultOf(this.recordCount, segments), id, rejected: this.rejected };
  }

  /** The load's entry for the manifest; undefined if its sources cannot be read again. */
  private entry(
    { parts = [] }: LoadExtras,
    starts: readonly PartitionStart[],
    beyond: Extension | undefined,
  ): LoadEntry | undefined {
    if (parts.length === 0 || starts.length === 0) return undefined;
    const load = { nowMs: this.nowMs, parts, runs: this.rows.runs(starts) };
    return beyond === undefined ? load : { ...load, beyond };
  }

  private extension(counts: readonly PartitionCount[]): Extension | undefined {
    const { agent, now, periodMs, highestPartition } = this.context;
    const beyondRetention = this.options.beyondRetention === true;
    const loaded = { agent, counts, highestPartition: highestPartition(), nowMs: now(), beyondRetention };
    return extendRetention(loaded, periodMs);
  }

  /** Writes all remaining rows. Afterwards only the ordinals are missing. */
  private async assemble(onProgress: (fraction: number) => void): Promise<SegmentAssembly> {
    if (this.window !== null) {
      if (this.sort.isEmpty) this.times.end();
      await this.write(await this.window.releaseAll());
      if (!this.sort.isEmpty) {
        await this.assembly().beginLate();
        await this.mergeInto(this.assembly(), undefined, onProgress);
      }
    } else {
      const written = await this.readBack();
      const { files } = this.assembly();
      const depth = Math.min(mergingDepthMax, this.context.workers.depth);
      const assembly = new SegmentAssembly({ ...this.target, firstNumber: files }, null, depth);
      this.assemblies.push(assembly);
      await this.mergeInto(assembly, written, onProgress);
    }
    await this.assembly().flush();
    onProgress(1);
    return this.assembly();
  }

  /** Reads the written segments back as a sorted run. */
  private async readBack(): Promise<SortedRun> {
    const segments = await this.assembly().finishUnplaced(this.schemaVersion);
    return runOfSegments(this.target, segments, this.times);
  }

  private async mergeInto(
    assembly: SegmentAssembly,
    written: SortedRun | undefined,
    onProgress: (fraction: number) => void,
  ): Promise<void> {
    let rows = 0;
    let told = 0;
    for await (const slices of await this.sort.sorted(written)) {
      await assembly.add(slices);
      for (const { from, to } of slices) rows += to - from;
      if (rows - told >= rowGroupRowsMax) {
        told = rows;
        onProgress(rows / this.recordCount);
      }
    }
  }

  private async placeRejected(): Promise<RejectedEntry[]> {
    if (this.rejectedFile === undefined) return [];
    const { directory, agent } = this.context;
    await this.rejectedFile.close();
    const file = `rejected/${this.id}.jsonl`;
    await moveIntoPlace(directory, agent, `${this.folder}/rejected.jsonl`, file);
    // A line that is rejected again keeps its age for retention.
    const { partition } = this.options.takes ?? {};
    const entry = this.rejectedFile.entry(file);
    return [partition === undefined ? entry : { ...entry, partition }];
  }

  async abort(): Promise<void> {
    if (this.state === 'ended') return;
    await everyStep([
      ...this.assemblies.map((assembly) => () => assembly.abort()),
      () => this.rejectedFile?.close(),
      () => this.end(),
    ]);
  }

  private async end(): Promise<void> {
    this.state = 'ended';
    for (const memory of this.lent) memory.free();
    // Always end the unit, even if closing fails: it may hold the commit lock.
    await everyStep([() => this.sort.close(), () => this.context.committer.end(this.id)]);
  }
}
