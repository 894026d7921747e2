import { isLogstrataError } from '../terms/errors.js';
import { schemaOf, type AgentState } from '../store/reading/agent-state.js';
import type { Committer } from '../store/manifest/committer.js';
import type { Directory } from '../store/disk/directory.js';
import { isFarOnly, noCounters, versionToWrite, type SegmentEntry } from '../store/manifest/manifest.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { proposeRewrite, rowsToRewrite, type CompactionPolicy, type Rewrite } from './compaction-policy.js';
import { rewriteSegments, type RewriteJob } from './rewrite.js';
import type { Codec } from '../parquet/compression.js';

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
  const { segments, codec } = rewrite;
  const schemaVersion = versionToWrite(state.manifest!, segments[0]!.schemaVersion);
  const schema = schemaOf(state.manifest!, schemaVersion);
  const id = await committer.begin();
  try {
    const written = await run({ agent: state.agent, id, segments, schema, schemaVersion, codec, share });
    await committer.publish(id, {
      segments: written,
      removes: segments.map(({ file }) => file),
      removesLiveFrom: segments.map(({ liveFrom }) => liveFrom ?? null),
      checkpoints: [],
      rejected: [],
      counters: noCounters,
    });
    return written;
  } finally {
    await committer.end(id);
  }
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
