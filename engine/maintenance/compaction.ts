import type { CompactOptions, CompactResult } from '../archive.js';
import { concatBatches, sliceBatch } from '../batch.js';
import type { RecordBatch } from '../column.js';
import { dayNumber } from '../cursor.js';
import { LogstrataError } from '../errors.js';
import {
  compactionBytesMax,
  compactionSegmentsMax,
  rowGroupBytesMax,
  rowGroupRowsMax,
  segmentRowGroupsMax,
} from '../limits.js';
import type { ReadCounters, RowGroup } from '../scan/snapshot.js';
import type { Schema } from '../schema.js';
import { InOrder } from '../workers/in-order.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { runsOfSegment, schemaOf, type AgentState } from '../storage/agent-state.js';
import { ColumnCache } from '../storage/column-cache.js';
import { compareRuns } from '../storage/committed-values.js';
import type { Committer } from '../storage/committer.js';
import type { Directory } from '../storage/directory.js';
import { encodeOnPool } from '../storage/encode-task.js';
import { noCounters, type Codec, type Manifest, type Run, type SegmentEntry } from '../storage/manifest.js';
import { SealedSegment } from '../storage/sealed-segment.js';
import { SegmentWriter } from '../storage/sealed-segment-writer.js';
import { addRun } from '../storage/seal.js';
import { buildingPath, moveIntoPlace, segmentFile } from '../storage/segment-place.js';
import { batchBytes } from '../storage/spill.js';

export interface CompactionContext {
  readonly directory: Directory;
  readonly state: AgentState;
  readonly committer: Committer;
  readonly codec: Codec;
  readonly workers: WorkerPool;
  readonly refresh: () => Promise<void>;
}

/**
 * Seals what is hot, then rewrites each day whose records lie in more segments than they need, or in another codec. Records
 * keep their positions, so answers and cursors stay the same.
 */
export async function compactAgent(
  context: CompactionContext,
  options: CompactOptions,
): Promise<CompactResult> {
  const { state, committer, refresh, codec } = context;
  await refresh();
  const before = liveSize(state);
  await committer.seal();
  await refresh();
  const total = Math.max(1, rowsToRewrite(state, codec));
  let done = 0;
  for (;;) {
    const group = state.manifest === undefined ? undefined : proposeMerge(state.manifest, codec);
    if (group === undefined) break;
    await rewrite(context, group, options.signal);
    await refresh();
    done += group.reduce((sum, segment) => sum + segment.rows, 0);
    options.onProgress?.(Math.min(1, done / total));
  }
  const after = liveSize(state);
  return {
    segmentsBefore: before.segments,
    segmentsAfter: after.segments,
    bytesBefore: before.bytes,
    bytesAfter: after.bytes,
  };
}

function liveSize(state: AgentState): { segments: number; bytes: number } {
  const segments = state.manifest?.segments ?? [];
  const hotBytes = state.hot.reduce((sum, hot) => sum + hot.endBytes, 0);
  return {
    segments: segments.length + state.hot.filter((hot) => hot.rows.rowCount > 0).length,
    bytes: segments.reduce((sum, segment) => sum + segment.bytes, hotBytes),
  };
}

/** Segments of one day and schema version, which alone may be merged. */
function groupsOf(manifest: Manifest): SegmentEntry[][] {
  const groups = new Map<string, SegmentEntry[]>();
  for (const segment of manifest.segments) {
    const key = `${dayNumber(segment.runs[0]!.partition)} ${segment.schemaVersion}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [segment]);
    else group.push(segment);
  }
  return [...groups.values()];
}

function rowsToRewrite(state: AgentState, codec: Codec): number {
  if (state.manifest === undefined) return 0;
  let rows = 0;
  for (const group of groupsOf(state.manifest)) {
    const chosen = choose(group, codec);
    if (chosen !== undefined) for (const segment of group) rows += segment.rows;
  }
  return rows;
}

/** The next segments to merge into one another; undefined when every day is as it should be. Only proposes. */
export function proposeMerge(manifest: Manifest, codec: Codec): SegmentEntry[] | undefined {
  for (const group of groupsOf(manifest)) {
    const chosen = choose(group, codec);
    if (chosen !== undefined) return chosen;
  }
  return undefined;
}

function choose(group: readonly SegmentEntry[], codec: Codec): SegmentEntry[] | undefined {
  const full = (segment: SegmentEntry) => segment.rowGroupRows.length >= segmentRowGroupsMax / 2;
  const small = group.filter((segment) => !full(segment)).sort((a, b) => a.rows - b.rows);
  const chosen: SegmentEntry[] = [];
  let bytes = 0;
  for (const segment of small) {
    const openBytes = segment.bytes / segment.rowGroupRows.length;
    if (
      chosen.length >= 2 &&
      (chosen.length === compactionSegmentsMax || bytes + openBytes > compactionBytesMax)
    )
      break;
    chosen.push(segment);
    bytes += openBytes;
  }
  if (chosen.length > 1) return chosen;
  const other = group.find((segment) => segment.codec !== codec);
  return other === undefined ? undefined : [other];
}

async function rewrite(
  context: CompactionContext,
  group: readonly SegmentEntry[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const { directory, state, committer } = context;
  const manifest = state.manifest!;
  const schema = schemaOf(manifest, group[0]!.schemaVersion);
  const id = await committer.begin();
  const cache = new ColumnCache(0);
  const replaces = group.map(({ file }) => file);
  const version = group[0]!.schemaVersion;
  const merged = new MergedSegments(context, id, schema, version, replaces);
  const sources: SealedSegment[] = [];
  try {
    const runs = [];
    for (const entry of group) {
      const path = `${state.agent}/${entry.file}`;
      const segment = await SealedSegment.open(directory, path, entry, schema, cache);
      sources.push(segment);
      runs.push(...runsOfSegment(entry, segment.rowGroups(schema)));
    }
    runs.sort(compareRuns);
    const rowGroups = new DecodedRowGroups(schema);
    for (const run of runs) {
      if (signal?.aborted) throw new LogstrataError('cancelled', 'compaction was stopped');
      const batch = await rowGroups.slice(run.rowGroup, run.firstRow, run.rows);
      await merged.add(batch, run.partition, run.firstOrdinal);
    }
    const segments = await merged.finish();
    await committer.publish(id, {
      segments,
      removes: replaces,
      checkpoints: [],
      rejected: [],
      counters: noCounters,
    });
  } finally {
    await merged.abort();
    for (const source of sources) await source.close();
    await committer.end(id);
  }
}

/** Row groups decoded whole, each for as long as runs still take rows out of it. */
class DecodedRowGroups {
  private readonly open = new Map<RowGroup, { batch: RecordBatch; taken: number }>();
  private readonly counters: ReadCounters = {
    bytesRead: 0,
    columnsDecoded: 0,
    columnsCached: 0,
    gramPiecesRead: 0,
  };

  constructor(private readonly schema: Schema) {}

  async slice(rowGroup: RowGroup, from: number, rows: number): Promise<RecordBatch> {
    let decoded = this.open.get(rowGroup);
    if (decoded === undefined) {
      const opened = await rowGroup.open();
      const columns = [];
      for (let field = 0; field < this.schema.fields.length; field++) {
        columns.push(await opened.column(field, this.counters, 'once'));
      }
      decoded = { batch: { length: rowGroup.rows, columns }, taken: 0 };
      this.open.set(rowGroup, decoded);
    }
    decoded.taken += rows;
    if (decoded.taken === rowGroup.rows) this.open.delete(rowGroup);
    return sliceBatch(decoded.batch, from, from + rows);
  }
}

/** Writes rows that come in the order of their positions as new segments of one day. */
class MergedSegments {
  private readonly entries: SegmentEntry[] = [];
  private pending: RecordBatch[] = [];
  private pendingRows = 0;
  private pendingBytes = 0;
  private runs: Run[] = [];
  private segmentRows = 0;
  private rowGroups = 0;
  private writer: SegmentWriter | undefined;
  private path = '';
  private readonly encoding: InOrder;

  constructor(
    private readonly context: CompactionContext,
    private readonly id: string,
    private readonly schema: Schema,
    private readonly schemaVersion: number,
    private readonly replaces: readonly string[],
  ) {
    this.encoding = new InOrder(context.workers.depth);
  }

  async add(batch: RecordBatch, partition: number, firstOrdinal: number): Promise<void> {
    let from = 0;
    while (from < batch.length) {
      const to = Math.min(batch.length, from + rowGroupRowsMax - this.pendingRows);
      const piece = sliceBatch(batch, from, to);
      addRun(this.runs, {
        partition,
        firstOrdinal: firstOrdinal + from,
        firstRow: this.segmentRows,
        rows: to - from,
      });
      this.pending.push(piece);
      this.pendingRows += to - from;
      this.segmentRows += to - from;
      this.pendingBytes += (batchBytes(batch) * (to - from)) / batch.length;
      from = to;
      if (this.pendingRows === rowGroupRowsMax || this.pendingBytes >= rowGroupBytesMax)
        await this.endRowGroup();
    }
  }

  private async endRowGroup(): Promise<void> {
    if (this.pendingRows === 0) return;
    const { schema, pending } = this;
    const { directory, state, codec, workers } = this.context;
    if (this.writer === undefined) {
      this.path = buildingPath(state.agent, this.id, this.entries.length);
      this.writer = await SegmentWriter.create(directory, this.path, schema, { codec });
    }
    const { writer } = this;
    await this.encoding.add(
      () => encodeOnPool(workers, schema, codec, concatBatches(schema, pending)),
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
    await this.encoding.drain();
    const written = await this.writer.finish(this.runs, this.schemaVersion);
    this.writer = undefined;
    const file = segmentFile(this.id, this.entries.length, this.runs[0]!.partition);
    const { directory, state } = this.context;
    await moveIntoPlace(directory, state.agent, this.path, file);
    this.entries.push({ ...written, file, schemaVersion: this.schemaVersion, replaces: this.replaces });
    this.runs = [];
    this.segmentRows = 0;
    this.rowGroups = 0;
  }

  async finish(): Promise<readonly SegmentEntry[]> {
    await this.endRowGroup();
    await this.endSegment();
    return this.entries;
  }

  async abort(): Promise<void> {
    this.encoding.drop();
    await this.writer?.abort();
  }
}
