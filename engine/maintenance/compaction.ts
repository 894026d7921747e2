import { groupBy } from '../core/arrays.js';
import { dayNumber, hourMs, importedPartition } from '../core/cursor.js';
import {
  rowGroupBytesMax,
  mergedAtOnceMax,
  retiredShareMax,
  rowGroupRowsMax,
  segmentFanIn,
  segmentRowGroupsMax,
  smallSegmentsMax,
  zstdBytesMin,
} from '../core/limits.js';
import {
  ageingPartition,
  ageReferenceMs,
  livePlaces,
  liveRows,
  segmentsToRefilter,
  versionToWrite,
  type Manifest,
  type RetentionRule,
  type SegmentEntry,
  isFarOnly,
  noCounters,
} from '../store/manifest/manifest.js';
import type { Codec } from '../parquet/compression.js';
import { isLogstrataError } from '../core/errors.js';
import { schemaOf, type AgentState } from '../store/reading/agent-state.js';
import type { Committer } from '../store/manifest/commit.js';
import { dueRules, predicatesOf, ruleMark, rulesInForce } from '../store/manifest/retention-rules.js';
import type { Directory } from '../store/disk/directory.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { rewriteSegments, type RewriteJob } from './rewrite.js';

/** The parameters of compaction. */
export interface CompactionPolicy {
  readonly nowMs: number;
  /** Age of a day (ms), counted from its end, at which its segments are compressed with ZSTD; null for never. */
  readonly zstdAfterMs: number | null;
  /** If set, every segment is to have this codec, whatever its age. */
  readonly codec?: Codec | undefined;
  /** True: merge each day into as few segments as possible, and build missing filters. False: rewrite only what pays off in the long run. */
  readonly thorough: boolean;
}

/** Segments of one day that are to be merged into new ones, in order of position, compressed with `codec`. */
export interface Rewrite {
  readonly segments: readonly SegmentEntry[];
  readonly codec: Codec;
  /** Rules of retention to apply to the segments. Absent: none. */
  readonly rules?: readonly RetentionRule[] | undefined;
}

const none: ReadonlySet<string> = new Set();

/**
 * The next segments to rewrite; undefined if there is nothing to do. Looks only at the manifest.
 *
 * @param except files that cannot be rewritten
 */
export function proposeRewrite(
  manifest: Manifest,
  policy: CompactionPolicy,
  except: ReadonlySet<string> = none,
): Rewrite | undefined {
  const ruled = proposeRules(manifest, policy, except);
  if (ruled !== undefined) return ruled;
  for (const group of groupsOf(manifest, except)) {
    const rewrite = proposeFor(group, manifest, policy);
    if (rewrite !== undefined) return rewrite;
  }
  return proposeReclaim(manifest, policy, except);
}

/** Proposes the newest segment that rules of retention are to be applied to. */
function proposeRules(
  manifest: Manifest,
  { nowMs, codec }: CompactionPolicy,
  except: ReadonlySet<string>,
): Rewrite | undefined {
  if (rulesInForce(manifest).length === 0) return undefined;
  const due = manifest.segments
    .filter(({ file }) => !except.has(file))
    .map((segment) => ({ segment, rules: dueRules(manifest, segment, nowMs) }))
    .filter(({ rules }) => rules.length > 0)
    .sort((a, b) => b.segment.runs.at(-1)!.partition - a.segment.runs.at(-1)!.partition);
  return due.map(({ segment, rules }) => ({ segments: [segment], codec: codec ?? segment.codec, rules }))[0];
}

/**
 * Proposes the segment with the largest share of records removed by retention, once the removed records of all segments exceed
 * `retiredShareMax` of the live ones. The worst segment has at least the average share, so each record that is reclaimed costs at most `1 /
 * retiredShareMax` rewritten ones.
 */
function proposeReclaim(
  manifest: Manifest,
  policy: CompactionPolicy,
  except: ReadonlySet<string>,
): Rewrite | undefined {
  let worst: SegmentEntry | undefined;
  let worstShare = 0;
  let live = 0;
  let over = 0;
  for (const segment of manifest.segments) {
    if (segment.far !== undefined) continue;
    const rows = livePlaces(segment);
    live += rows;
    over += segment.rows - rows;
    const share = 1 - rows / segment.rows;
    if (share <= worstShare || except.has(segment.file)) continue;
    worst = segment;
    worstShare = share;
  }
  if (worst === undefined || (!policy.thorough && over <= live * retiredShareMax)) return undefined;
  return { segments: [worst], codec: policy.codec ?? worst.codec };
}

/** Number of rows in segments that are to be rewritten, for showing progress. */
function rowsToRewrite(manifest: Manifest, policy: CompactionPolicy): number {
  let rows = 0;
  for (const group of groupsOf(manifest, none)) {
    const isDue = proposeFor(group, manifest, policy) !== undefined;
    for (const segment of group) if (isDue || livePlaces(segment) < segment.rows) rows += segment.rows;
  }
  return rows;
}

/** Groups the segments that may be merged: same day, same columns, same `keepUntilMs`. Imported records are grouped by the day that they age by. */
function groupsOf(manifest: Manifest, except: ReadonlySet<string>): SegmentEntry[][] {
  const versions = new Map<number, number>();
  for (const { version } of manifest.schemas) versions.set(version, versionToWrite(manifest, version));
  // Shipped segments are not rewritten, because their copy in the far tier would no longer match.
  const segments = manifest.segments.filter(
    ({ file, far, stays }) => !except.has(file) && far === undefined && stays !== true,
  );
  const keyOf = (segment: SegmentEntry): string => {
    const version = versions.get(segment.schemaVersion) ?? segment.schemaVersion;
    const isImported = segment.runs[0]!.partition === importedPartition;
    return `${dayOf(segment)} ${isImported} ${version} ${segment.keepUntilMs ?? ''}`;
  };
  return [...groupBy(segments, keyOf).values()];
}

function dayOf(segment: SegmentEntry): number {
  return dayNumber(ageingPartition(segment, segment.runs[0]!.partition));
}

function proposeFor(
  group: readonly SegmentEntry[],
  manifest: Manifest,
  policy: CompactionPolicy,
): Rewrite | undefined {
  const endMs = (dayOf(group[0]!) + 1) * 24 * hourMs;
  const ageMs = ageReferenceMs(manifest, policy.nowMs) - endMs;
  const aged = policy.zstdAfterMs !== null && ageMs >= policy.zstdAfterMs;
  const open = group.filter((segment) => !isFull(segment)).sort((a, b) => a.rows - b.rows);
  const merged = policy.thorough
    ? atLeastTwo(mergeable(open))
    : ((aged ? dueForZstd(open) : undefined) ?? crowd(open));
  if (merged !== undefined) return { segments: merged, codec: codecOf(merged, aged, policy) };
  const wanted = (segment: SegmentEntry): Codec =>
    policy.codec ?? (aged && segment.bytes >= zstdBytesMin ? 'zstd' : segment.codec);
  // Segments without value filters, or with other filters than their fields now ask for, are rewritten only by a thorough compaction.
  const unfiltered = new Set(policy.thorough ? segmentsToRefilter(manifest) : []);
  const other = group.find((segment) => segment.codec !== wanted(segment) || unfiltered.has(segment));
  return other === undefined ? undefined : { segments: [other], codec: wanted(other) };
}

/** Whether a segment is so large that merging it is not worthwhile. */
function isFull(segment: SegmentEntry): boolean {
  return segment.rowGroupRows.length >= segmentRowGroupsMax / 2;
}

/** The longest prefix of the segments that may be merged at once; at least the first two. */
function mergeable(segments: readonly SegmentEntry[]): SegmentEntry[] {
  const chosen: SegmentEntry[] = [];
  let bytes = 0;
  for (const segment of segments) {
    const openBytes = segment.bytes / segment.rowGroupRows.length;
    const isTooMuch = chosen.length === mergedAtOnceMax || bytes + openBytes > rowGroupBytesMax;
    if (chosen.length >= 2 && isTooMuch) break;
    chosen.push(segment);
    bytes += openBytes;
  }
  return chosen;
}

function atLeastTwo(segments: SegmentEntry[]): SegmentEntry[] | undefined {
  return segments.length < 2 ? undefined : segments;
}

/**
 * The LZ4 segments of a day that is due for ZSTD. Since they have to be rewritten anyway, they are merged, together with ZSTD segments that
 * are no larger than they are in total.
 */
function dueForZstd(open: readonly SegmentEntry[]): SegmentEntry[] | undefined {
  const due = open.filter(({ codec }) => codec === 'lz4');
  if (due.reduce((sum, { bytes }) => sum + bytes, 0) < zstdBytesMin) return undefined;
  let rows = due.reduce((sum, segment) => sum + segment.rows, 0);
  for (const segment of open) {
    if (segment.codec !== 'zstd' || segment.rows > rows) continue;
    due.push(segment);
    rows += segment.rows;
  }
  return atLeastTwo(mergeable(due));
}

/** Segments of similar size, if there are too many of them. */
function crowd(open: readonly SegmentEntry[]): SegmentEntry[] | undefined {
  for (const [tier, same] of groupBy(open, ({ rows }) => tierOf(rows))) {
    if (same.length >= (tier === 0 ? smallSegmentsMax + 1 : segmentFanIn)) return mergeable(same);
  }
  return undefined;
}

/** The size tier of a segment: 0 below a row group, and one more for each factor of `segmentFanIn`. */
function tierOf(rows: number): number {
  let tier = 0;
  for (let bound = rowGroupRowsMax; rows >= bound; bound *= segmentFanIn) tier++;
  return tier;
}

/** ZSTD for old days, else the codec of most of the rows. */
function codecOf(segments: readonly SegmentEntry[], aged: boolean, policy: CompactionPolicy): Codec {
  if (policy.codec !== undefined) return policy.codec;
  const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  if (aged && bytes >= zstdBytesMin) return 'zstd';
  let rows = 0;
  for (const segment of segments) rows += segment.codec === 'zstd' ? segment.rows : -segment.rows;
  return rows > 0 ? 'zstd' : 'lz4';
}

export interface CompactionContext {
  readonly directory: Directory;
  readonly state: AgentState;
  readonly committer: Committer;
  readonly workers: WorkerPool;
  readonly now: () => number;
  readonly zstdAfterMs: number | null;
  readonly refresh: () => Promise<void>;
}

/** How often in a row a rewrite may fail because another one, or retention, was faster. It is proposed again each time. */
const conflictsMax = 10;

/**
 * Seals the hot rows, then rewrites each day whose records are in more segments than necessary, or that is old enough for another codec.
 * Records keep their positions, so answers and cursors do not change.
 */
export async function compactAgent(
  context: CompactionContext,
  options: CompactOptions,
): Promise<CompactResult> {
  const { state, committer, refresh, zstdAfterMs } = context;
  const policy: CompactionPolicy = {
    nowMs: context.now(),
    zstdAfterMs,
    codec: options.codec,
    thorough: true,
  };
  await refresh();
  const before = liveSize(state);
  await committer.seal();
  await refresh();
  const total = Math.max(1, state.manifest === undefined ? 0 : rowsToRewrite(state.manifest, policy));
  let done = 0;
  let conflicts = 0;
  for (;;) {
    const rewrite = state.manifest === undefined ? undefined : proposeRewrite(state.manifest, policy);
    if (rewrite === undefined) break;
    try {
      await publishRewrite(context, rewrite, (job) => rewriteSegments({ ...context, ...options }, job));
      conflicts = 0;
    } catch (error) {
      if (!isOvertaken(error) || ++conflicts === conflictsMax) throw error;
    }
    await refresh();
    done += rewrite.segments.reduce((sum, segment) => sum + segment.rows, 0);
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

/** Whether a rewrite failed only because its input has been replaced or removed meanwhile. */
export function isOvertaken(error: unknown): boolean {
  return isLogstrataError(error) && (error.code === 'conflict' || error.code === 'not_found');
}

/** Calls `run` to build the new segments, and replaces the old ones by them in one manifest. Returns the new segments. */
export async function publishRewrite(
  { state, committer }: { readonly state: AgentState; readonly committer: Committer },
  rewrite: Rewrite,
  run: (job: RewriteJob) => Promise<readonly SegmentEntry[]>,
  share = 1,
): Promise<readonly SegmentEntry[]> {
  const { segments, codec, rules: applied = [] } = rewrite;
  const manifest = state.manifest!;
  const schemaVersion = versionToWrite(manifest, segments[0]!.schemaVersion);
  const schema = schemaOf(manifest, schemaVersion);
  const shown = manifest.schemas.at(-1)!.schema;
  const filters = applied.map((rule) => predicatesOf(rule, shown)!);
  const rules = applied.length === 0 ? undefined : { schema: shown, filters, marks: applied.map(ruleMark) };
  const id = await committer.begin();
  try {
    const job = { agent: state.agent, id, segments, schema, schemaVersion, codec, share, rules };
    const written = await run(job);
    const isSame = written[0]?.file === segments[0]!.file;
    const replaced = isSame ? [] : segments;
    await committer.publish(id, {
      segments: isSame ? [] : written,
      removes: replaced.map(({ file }) => file),
      removesLiveFrom: replaced.map(({ liveFrom }) => liveFrom ?? null),
      ...(rules === undefined ? {} : { rules: rules.marks, retires: liveOf(segments) - liveOf(written) }),
      ...(isSame ? { ruled: written.map(({ file, ruled }) => ({ file, ruled })) } : {}),
      checkpoints: [],
      rejected: [],
      counters: noCounters,
    });
    return written;
  } finally {
    await committer.end(id);
  }
}

function liveOf(segments: readonly SegmentEntry[]): number {
  return segments.reduce((sum, segment) => sum + liveRows(segment), 0);
}

function liveSize(state: AgentState): { segments: number; bytes: number } {
  const segments = (state.manifest?.segments ?? []).filter((segment) => !isFarOnly(segment));
  return {
    segments: segments.length + state.hot.filter((hot) => hot.rows.rowCount > 0).length,
    bytes: segments.reduce((sum, segment) => sum + segment.bytes, state.hotBytes),
  };
}

export interface CompactOptions {
  /** Codec of all segments. By default LZ4, and ZSTD for days that are old enough. */
  readonly codec?: Codec | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** Size of the archive before and after the compaction. Segments that are only in the far tier are not counted. */
export interface CompactResult {
  readonly segmentsBefore: number;
  readonly segmentsAfter: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** What background compaction has done for an agent since the process started. */
export interface CompactionCounts {
  readonly rewrites: number;
  readonly failed: number;
  /** Number of segments that were replaced, and of those that replaced them. */
  readonly segmentsRead: number;
  readonly segmentsWritten: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** A mutable `CompactionCounts`. */
export class CompactionTally implements CompactionCounts {
  rewrites = 0;
  failed = 0;
  segmentsRead = 0;
  segmentsWritten = 0;
  bytesRead = 0;
  bytesWritten = 0;

  /** Counts a rewrite that replaced `read` by `written`. */
  rewritten(read: readonly SegmentEntry[], written: readonly SegmentEntry[]): void {
    this.rewrites++;
    this.segmentsRead += read.length;
    this.segmentsWritten += written.length;
    this.bytesRead += sizeOf(read);
    this.bytesWritten += sizeOf(written);
  }
}

function sizeOf(segments: readonly SegmentEntry[]): number {
  return segments.reduce((sum, { bytes }) => sum + bytes, 0);
}
