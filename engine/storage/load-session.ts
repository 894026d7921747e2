import { concatBatches, takeRows } from '../batch.js';
import type { RecordBatch } from '../column.js';
import { LogstrataError } from '../errors.js';
import { rowGroupBytesMax, rowGroupRowsMax, sortMemoryBytesMax } from '../limits.js';
import type { Schema } from '../schema.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { CommitExtras, LoadOptions, LoadResult, LoadSession, RejectedLine } from './commit.js';
import { buildingFolder, type Committer } from './committer.js';
import type { Directory } from './directory.js';
import type { Codec, RejectedEntry, SegmentEntry } from './manifest.js';
import { mergeRuns, reduceRuns, type PageSlice } from './merge-runs.js';
import { placementTimes } from './placement.js';
import { RejectedFile } from './rejected-file.js';
import { SegmentAssembly } from './segment-assembly.js';
import { GatheredRows } from './gathered-rows.js';
import { moveIntoPlace } from './segment-place.js';
import { batchBytes, memoryRun, SpillFile, type SortedPage, type SortedRun } from './spill.js';

export interface LoadContext {
  readonly directory: Directory;
  readonly agent: string;
  readonly committer: Committer;
  readonly now: () => number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

/**
 * An external sort that ends in sealed segments. Batches gather into sorted runs of a row group's size; runs beyond
 * `sortMemoryBytesMax` go to a file; `commit` merges them into segments and publishes those in one manifest.
 */
export class LoadUnit implements LoadSession {
  readonly schema: Schema;
  private readonly folder: string;
  private readonly codec: Codec;
  private readonly previousMs = new Map<number, number>();
  private pending: SortedPage[] = [];
  private pendingRows = 0;
  private pendingBytes = 0;
  private readonly runs: SortedRun[] = [];
  private memoryBytes = 0;
  private spill: SpillFile | undefined;
  private assembly: SegmentAssembly | undefined;
  private rejectedFile: RejectedFile | undefined;
  private recordCount = 0;
  private state: 'open' | 'committing' | 'ended' = 'open';

  private constructor(
    private readonly context: LoadContext,
    private readonly id: string,
    options: LoadOptions,
  ) {
    this.schema = context.committer.schema;
    this.folder = buildingFolder(context.agent, id);
    this.codec = options.codec ?? context.codec;
  }

  static async begin(context: LoadContext, options: LoadOptions = {}): Promise<LoadUnit> {
    const id = await context.committer.begin();
    return new LoadUnit(context, id, options);
  }

  get records(): number {
    return this.recordCount;
  }

  get rejected(): number {
    return this.rejectedFile?.lines ?? 0;
  }

  async append(
    batch: RecordBatch,
    source: number,
    previousTimeMs: number | null = null,
  ): Promise<number | null> {
    this.assertOpen();
    const previous = this.previousMs.get(source) ?? previousTimeMs;
    if (batch.length === 0) return previous;
    const timesMs = placementTimes(this.schema, batch, this.context.now(), previous);
    const lastTimeMs = timesMs[batch.length - 1]!;
    this.previousMs.set(source, lastTimeMs);
    this.recordCount += batch.length;
    const bytes = batchBytes(batch);
    if (this.pendingRows + batch.length > rowGroupRowsMax || this.pendingBytes + bytes > rowGroupBytesMax) {
      await this.endRun();
    }
    this.pending.push({ batch, timesMs, bytes });
    this.pendingRows += batch.length;
    this.pendingBytes += bytes;
    return lastTimeMs;
  }

  async reject(line: RejectedLine): Promise<void> {
    this.assertOpen();
    this.rejectedFile ??= await RejectedFile.create(this.context.directory, `${this.folder}/rejected.jsonl`);
    await this.rejectedFile.add(line);
  }

  private assertOpen(): void {
    if (this.state !== 'open') throw new LogstrataError('closed', 'this load has ended');
  }

  private async endRun(): Promise<void> {
    if (this.pendingRows === 0) return;
    const pages = ascendAll(this.pending) ? this.pending : [sortPage(joinPages(this.schema, this.pending))];
    const order = this.runs.length;
    if (this.memoryBytes + this.pendingBytes <= sortMemoryBytesMax) {
      this.memoryBytes += this.pendingBytes;
      this.runs.push(memoryRun(pages, order));
    } else {
      this.spill ??= await SpillFile.create(this.context.directory, `${this.folder}/runs`);
      this.runs.push(await this.spill.writeRun(pages, order));
    }
    this.pending = [];
    this.pendingRows = 0;
    this.pendingBytes = 0;
  }

  async commit(
    extras: Pick<CommitExtras, 'checkpoints' | 'counters'>,
    onProgress: (fraction: number) => void = () => {},
  ): Promise<LoadResult> {
    this.assertOpen();
    this.state = 'committing';
    const { committer, directory, agent, workers } = this.context;
    const assembly = new SegmentAssembly(directory, agent, this.id, this.schema, this.codec, workers);
    this.assembly = assembly;
    await this.endRun();
    await this.mergeInto(assembly, onProgress);
    await this.rejectedFile?.sync();
    const counts = assembly.partitionCounts();
    const starts = await committer.reserve(this.id, counts);
    const finished = await assembly.finish(starts, committer.schemaVersion);
    const segments: SegmentEntry[] = [];
    for (const { entry, path } of finished) {
      await moveIntoPlace(directory, agent, path, entry.file);
      segments.push(entry);
    }
    const rejected = await this.placeRejected();
    await committer.publish(this.id, {
      segments,
      removes: [],
      checkpoints: extras.checkpoints,
      rejected,
      counters: { ...extras.counters, records: this.recordCount, rejected: this.rejected },
    });
    const result: LoadResult = {
      records: this.recordCount,
      rejected: this.rejected,
      bytesOnDisk: segments.reduce((sum, segment) => sum + segment.bytes, 0),
      segments: segments.length,
    };
    await this.end();
    return result;
  }

  private async mergeInto(assembly: SegmentAssembly, onProgress: (fraction: number) => void): Promise<void> {
    const { directory } = this.context;
    const runs = await reduceRuns(this.runs, async (slices, order) => {
      this.spill ??= await SpillFile.create(directory, `${this.folder}/runs`);
      return this.spill.writeRun(pagesOf(this.schema, slices), order);
    });
    this.runs.length = 0;
    let rows = 0;
    let told = 0;
    for await (const slices of mergeRuns(runs)) {
      await assembly.add(slices);
      for (const { from, to } of slices) rows += to - from;
      if (rows - told >= rowGroupRowsMax) {
        told = rows;
        onProgress(rows / this.recordCount);
      }
    }
    await assembly.flush();
    onProgress(1);
  }

  private async placeRejected(): Promise<RejectedEntry[]> {
    if (this.rejectedFile === undefined) return [];
    const { directory, agent } = this.context;
    await this.rejectedFile.close();
    const file = `rejected/${this.id}.jsonl`;
    await moveIntoPlace(directory, agent, `${this.folder}/rejected.jsonl`, file);
    return [this.rejectedFile.entry(file)];
  }

  async abort(): Promise<void> {
    if (this.state === 'ended') return;
    await this.assembly?.abort();
    await this.rejectedFile?.close();
    await this.end();
  }

  private async end(): Promise<void> {
    this.state = 'ended';
    await this.spill?.close();
    await this.context.committer.end(this.id);
  }
}

function joinPages(schema: Schema, pages: readonly SortedPage[]): SortedPage {
  if (pages.length === 1) return pages[0]!;
  const batch = concatBatches(
    schema,
    pages.map((page) => page.batch),
  );
  const timesMs = new Float64Array(batch.length);
  let at = 0;
  for (const page of pages) {
    timesMs.set(page.timesMs, at);
    at += page.timesMs.length;
  }
  return { batch, timesMs, bytes: batchBytes(batch) };
}

/** Sorts rows by time; equal times stay in their order. Logs are mostly in order already, which costs one look. */
export function sortPage(page: SortedPage): SortedPage {
  const { timesMs, batch } = page;
  if (ascends(timesMs)) return page;
  const order = new Uint32Array(batch.length);
  for (let i = 0; i < order.length; i++) order[i] = i;
  order.sort((a, b) => timesMs[a]! - timesMs[b]! || a - b);
  const sorted = new Float64Array(batch.length);
  for (let i = 0; i < order.length; i++) sorted[i] = timesMs[order[i]!]!;
  return { batch: takeRows(batch, order), timesMs: sorted, bytes: page.bytes };
}

function ascendAll(pages: readonly SortedPage[]): boolean {
  return pages.every((page, i) => {
    const before = pages[i - 1]?.timesMs;
    return ascends(page.timesMs) && (before === undefined || before.at(-1)! <= page.timesMs[0]!);
  });
}

function ascends(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if (times[i]! < times[i - 1]!) return false;
  return true;
}

/** Gathers slices into pages of a row group's size, so that a merged run is written in pieces worth writing. */
async function* pagesOf(
  schema: Schema,
  merged: AsyncIterable<readonly PageSlice[]>,
): AsyncGenerator<SortedPage> {
  let gathered = new GatheredRows();
  for await (const slices of merged) {
    for (const { page, from, to } of slices) {
      gathered.add(page, from, to);
      if (gathered.rows < rowGroupRowsMax && gathered.bytes < sortMemoryBytesMax) continue;
      yield gathered.page(schema);
      gathered = new GatheredRows();
    }
  }
  if (gathered.rows > 0) yield gathered.page(schema);
}
