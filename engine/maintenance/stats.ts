import type { StoreStats } from '../archive.js';
import { formatCursor } from '../cursor.js';
import type { AgentState } from '../storage/agent-state.js';
import { nothingRetired } from '../storage/manifest.js';

/** What is stored of an agent, from its manifest and its hot rows. */
export function agentStats(state: AgentState): StoreStats {
  if (state.damage !== undefined) throw state.damage;
  const snapshot = state.snapshot();
  try {
    const { manifest, values, hot } = state;
    const segments = manifest?.segments ?? [];
    const rejected = state.rejected();
    const first = snapshot.runs[0];
    const last = snapshot.runs.at(-1);
    const groups = new Set(snapshot.runs.map((run) => run.rowGroup));
    const hotTimes = hot.flatMap(({ rows }) => rows.timeRangeMs() ?? []);
    const mins = [...[...groups].flatMap((group) => group.timeMinMs ?? []), ...hotTimes];
    const maxs = [...[...groups].flatMap((group) => group.timeMaxMs ?? []), ...hotTimes];
    return {
      agent: state.agent,
      manifest: manifest?.number ?? 0,
      records: snapshot.runs.reduce((sum, run) => sum + run.rows, 0),
      segments: segments.length,
      rowGroups: segments.reduce((sum, segment) => sum + segment.rowGroupRows.length, 0),
      hotRecords: state.hotRowCount,
      hotFiles: hot.length,
      bytesSealed: segments.reduce((sum, segment) => sum + segment.bytes, 0),
      bytesZstd: segments.reduce((sum, { codec, bytes }) => sum + (codec === 'zstd' ? bytes : 0), 0),
      bytesHot: state.hotBytes,
      bytesGramFilters: segments.reduce((sum, segment) => sum + segment.gramFilterBytes, 0),
      bytesRejected: rejected.reduce((sum, { bytes }) => sum + bytes, 0),
      linesRejected: rejected.reduce((sum, { lines }) => sum + lines, 0),
      timeMinMs: mins.length === 0 ? null : mins.reduce((a, b) => Math.min(a, b)),
      timeMaxMs: maxs.length === 0 ? null : maxs.reduce((a, b) => Math.max(a, b)),
      firstCursor:
        first === undefined
          ? null
          : formatCursor({ partition: first.partition, ordinal: first.firstOrdinal }),
      lastCursor:
        last === undefined
          ? null
          : formatCursor({ partition: last.partition, ordinal: last.firstOrdinal + last.rows - 1 }),
      sources: values.checkpoints().filter(({ headBytes }) => headBytes > 0).length,
      counters: values.counters,
      schema: state.schema,
      retired: manifest?.retired ?? nothingRetired,
    };
  } finally {
    snapshot.release();
  }
}
