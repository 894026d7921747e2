import type { AgentFigures } from '../../engine/index.js';
import type { Metric, Sample } from './metric.js';

/** Reads a figure of an agent; undefined where the agent has no such figure. */
type Read = (agent: AgentFigures) => number | undefined;

function byAgent(type: Metric['type'], name: string, help: string, read: Read): Metric {
  return {
    name,
    type,
    help,
    labels: ['agent'],
    *read({ archive }) {
      for (const figures of archive.agents) {
        const value = read(figures);
        if (value !== undefined) yield [value, figures.agent];
      }
    },
  };
}

const codecs = ['lz4', 'zstd'] as const;

function byCodec(name: string, help: string, figure: 'files' | 'bytes'): Metric {
  return {
    name,
    type: 'gauge',
    help,
    labels: ['agent', 'codec'],
    *read({ archive }): Generator<Sample> {
      for (const { agent, segments } of archive.agents)
        for (const codec of codecs) yield [segments[codec][figure], agent, codec];
    },
  };
}

/** Metrics of stored records and of background work. */
export const archiveMetrics: readonly Metric[] = [
  byAgent('gauge', 'damaged', 'Whether the records can not be read (1).', (agent) => Number(agent.isDamaged)),
  byAgent('gauge', 'records', 'Records that are there, in files of the archive.', ({ records }) => records),
  byCodec('segments', 'Sealed segments.', 'files'),
  byCodec('segment_bytes', 'Bytes of sealed segments.', 'bytes'),
  byAgent('gauge', 'hot_records', 'Records that are not sealed yet.', ({ hotRecords }) => hotRecords),
  byAgent('gauge', 'hot_bytes', 'Bytes of hot segments.', ({ hotBytes }) => hotBytes),
  byAgent(
    'gauge',
    'rejected_kept_bytes',
    'Bytes of rejected lines that are kept.',
    (agent) => agent.rejectedBytes,
  ),
  byAgent(
    'gauge',
    'attached_files',
    'Files answered from where they lie.',
    ({ attachedFiles }) => attachedFiles,
  ),
  byAgent('gauge', 'attached_records', 'Records in such files.', ({ attachedRecords }) => attachedRecords),
  byAgent(
    'counter',
    'stored_records_total',
    'Records stored over the life of the agent.',
    (agent) => agent.counters.records,
  ),
  byAgent(
    'counter',
    'stored_input_bytes_total',
    'Bytes of the lines that were stored.',
    (agent) => agent.counters.inputBytes,
  ),
  byAgent(
    'counter',
    'rejected_lines_total',
    'Lines that became no record, over the life of the agent.',
    (agent) => agent.counters.rejected,
  ),
  byAgent(
    'counter',
    'unreadable_values_total',
    'Values that did not read as their type and are null.',
    (agent) => agent.counters.unreadableValues,
  ),
  byAgent(
    'counter',
    'replaced_sequences_total',
    'Sequences of bytes that were not UTF-8.',
    (agent) => agent.counters.replacedBytes,
  ),
  byAgent(
    'counter',
    'commits_total',
    'Batches and manifests that became durable.',
    ({ commits }) => commits.done,
  ),
  byAgent(
    'counter',
    'commits_failed_total',
    'Times that the disk failed a commit.',
    ({ commits }) => commits.failed,
  ),
  byAgent(
    'counter',
    'compactions_total',
    'Rewrites in the background.',
    ({ compaction }) => compaction?.rewrites,
  ),
  byAgent(
    'counter',
    'compactions_failed_total',
    'Rewrites that failed.',
    ({ compaction }) => compaction?.failed,
  ),
  byAgent(
    'counter',
    'compaction_read_segments_total',
    'Segments that rewrites replaced.',
    ({ compaction }) => compaction?.segmentsRead,
  ),
  byAgent(
    'counter',
    'compaction_written_segments_total',
    'Segments that rewrites made.',
    ({ compaction }) => compaction?.segmentsWritten,
  ),
  byAgent(
    'counter',
    'compaction_read_bytes_total',
    'Bytes of the segments replaced.',
    ({ compaction }) => compaction?.bytesRead,
  ),
  byAgent(
    'counter',
    'compaction_written_bytes_total',
    'Bytes of the segments made.',
    ({ compaction }) => compaction?.bytesWritten,
  ),
  byAgent('gauge', 'far_records', 'Records with a copy in the far tier.', ({ farRecords }) => farRecords),
  byAgent(
    'gauge',
    'far_only_records',
    'Records that are in the far tier alone.',
    ({ farOnlyRecords }) => farOnlyRecords,
  ),
  byAgent(
    'gauge',
    'far_leftovers',
    'Attempts that are to be dropped in the far tier.',
    ({ farLeftovers }) => farLeftovers,
  ),
  byAgent(
    'counter',
    'far_shipped_units_total',
    'Units shipped to the far tier.',
    ({ shipping }) => shipping?.shipped,
  ),
  byAgent(
    'counter',
    'far_shipped_records_total',
    'Records in these units.',
    ({ shipping }) => shipping?.rows,
  ),
  byAgent('counter', 'far_shipped_bytes_total', 'Bytes sent for them.', ({ shipping }) => shipping?.bytes),
  byAgent('counter', 'far_failures_total', 'Times that shipping failed.', ({ shipping }) => shipping?.failed),
  byAgent(
    'gauge',
    'reader_lag_seconds',
    "How old the writer's word is by which this reader answers.",
    ({ lagMs }) => (lagMs === undefined ? undefined : lagMs / 1000),
  ),
  byAgent(
    'counter',
    'retention_records_total',
    'Records that retention has taken, over the life of the agent.',
    (agent) => agent.retired.records,
  ),
  byAgent(
    'counter',
    'retention_segments_total',
    'Segments that retention has taken.',
    (agent) => agent.retired.segments,
  ),
  byAgent(
    'counter',
    'retention_bytes_total',
    'Bytes of the segments that retention has taken.',
    (agent) => agent.retired.bytes,
  ),
  {
    name: 'pool_bytes',
    type: 'gauge',
    help: 'Decoded columns in memory.',
    read: ({ archive }) => [[archive.pool.bytes]],
  },
  {
    name: 'pool_pinned_bytes',
    type: 'gauge',
    help: 'Those of them that queries hold.',
    read: ({ archive }) => [[archive.pool.pinnedBytes]],
  },
  {
    name: 'pool_limit_bytes',
    type: 'gauge',
    help: 'The most that decoded columns may take: storage.cache.',
    read: ({ archive }) => [[archive.pool.bytesMax]],
  },
  {
    name: 'pool_evictions_total',
    type: 'counter',
    help: 'Columns that had to go so that others had room.',
    read: ({ archive }) => [[archive.pool.evictions]],
  },
  {
    name: 'disk_size_bytes',
    type: 'gauge',
    help: 'Size of the disk with the data folder.',
    read: ({ archive: { disk } }) => (disk === null ? [] : [[disk.sizeBytes]]),
  },
  {
    name: 'disk_free_bytes',
    type: 'gauge',
    help: 'What of it is free for the server.',
    read: ({ archive: { disk } }) => (disk === null ? [] : [[disk.freeBytes]]),
  },
];
