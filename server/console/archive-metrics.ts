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
  byAgent(
    'gauge',
    'damaged',
    '1 if the records of the agent cannot be read because a file is damaged, else 0.',
    (agent) => Number(agent.isDamaged),
  ),
  byAgent(
    'gauge',
    'records',
    'Stored records, sealed and hot, without those in attached files.',
    ({ records }) => records,
  ),
  byCodec('segments', 'Sealed segments.', 'files'),
  byCodec('segment_bytes', 'Bytes of sealed segments.', 'bytes'),
  byAgent('gauge', 'hot_records', 'Records that are not sealed yet.', ({ hotRecords }) => hotRecords),
  byAgent('gauge', 'hot_bytes', 'Bytes of hot segments.', ({ hotBytes }) => hotBytes),
  byAgent('gauge', 'rejected_kept_bytes', 'Bytes of stored rejected lines.', (agent) => agent.rejectedBytes),
  byAgent(
    'gauge',
    'attached_files',
    'Attached archive files, which are queried in place.',
    ({ attachedFiles }) => attachedFiles,
  ),
  byAgent(
    'gauge',
    'attached_records',
    'Records in attached archive files.',
    ({ attachedRecords }) => attachedRecords,
  ),
  byAgent(
    'counter',
    'stored_records_total',
    'Records stored over the life of the agent.',
    (agent) => agent.counters.records,
  ),
  byAgent(
    'counter',
    'stored_input_bytes_total',
    'Bytes of the stored lines, over the life of the agent.',
    (agent) => agent.counters.inputBytes,
  ),
  byAgent(
    'counter',
    'rejected_lines_total',
    'Lines rejected over the life of the agent.',
    (agent) => agent.counters.rejected,
  ),
  byAgent(
    'counter',
    'unreadable_values_total',
    'Values stored as null because their text does not fit the type of the field, over the life of the agent.',
    (agent) => agent.counters.unreadableValues,
  ),
  byAgent(
    'counter',
    'replaced_sequences_total',
    'Invalid UTF-8 sequences replaced by U+FFFD, over the life of the agent.',
    (agent) => agent.counters.replacedBytes,
  ),
  byAgent(
    'counter',
    'commits_total',
    'Batches and manifests written durably to the disk.',
    ({ commits }) => commits.done,
  ),
  byAgent(
    'counter',
    'commits_failed_total',
    'Commits that failed because of a disk error.',
    ({ commits }) => commits.failed,
  ),
  byAgent(
    'counter',
    'compactions_total',
    'Segment rewrites done in the background.',
    ({ compaction }) => compaction?.rewrites,
  ),
  byAgent(
    'counter',
    'compactions_failed_total',
    'Segment rewrites that failed.',
    ({ compaction }) => compaction?.failed,
  ),
  byAgent(
    'counter',
    'compaction_read_segments_total',
    'Segments replaced by rewrites.',
    ({ compaction }) => compaction?.segmentsRead,
  ),
  byAgent(
    'counter',
    'compaction_written_segments_total',
    'Segments written by rewrites.',
    ({ compaction }) => compaction?.segmentsWritten,
  ),
  byAgent(
    'counter',
    'compaction_read_bytes_total',
    'Bytes of the segments replaced by rewrites.',
    ({ compaction }) => compaction?.bytesRead,
  ),
  byAgent(
    'counter',
    'compaction_written_bytes_total',
    'Bytes of the segments written by rewrites.',
    ({ compaction }) => compaction?.bytesWritten,
  ),
  byAgent('gauge', 'far_records', 'Records with a copy in the far tier.', ({ farRecords }) => farRecords),
  byAgent(
    'gauge',
    'far_only_records',
    'Records stored only in the far tier.',
    ({ farOnlyRecords }) => farOnlyRecords,
  ),
  byAgent(
    'gauge',
    'far_leftovers',
    'Leftover attempts in the far tier, to be dropped.',
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
    'Records in the units shipped to the far tier.',
    ({ shipping }) => shipping?.rows,
  ),
  byAgent(
    'counter',
    'far_shipped_bytes_total',
    'Bytes sent to the far tier.',
    ({ shipping }) => shipping?.bytes,
  ),
  byAgent(
    'counter',
    'far_failures_total',
    'Failed attempts to ship to the far tier.',
    ({ shipping }) => shipping?.failed,
  ),
  byAgent(
    'gauge',
    'reader_lag_seconds',
    "Age of the writer's state that this reader answers from, in seconds.",
    ({ lagMs }) => (lagMs === undefined ? undefined : lagMs / 1000),
  ),
  byAgent(
    'counter',
    'retention_records_total',
    'Records removed by retention over the life of the agent.',
    (agent) => agent.retired.records,
  ),
  byAgent(
    'counter',
    'retention_segments_total',
    'Segments removed by retention over the life of the agent.',
    (agent) => agent.retired.segments,
  ),
  byAgent(
    'counter',
    'retention_bytes_total',
    'Bytes of the segments removed by retention over the life of the agent.',
    (agent) => agent.retired.bytes,
  ),
  {
    name: 'pool_bytes',
    type: 'gauge',
    help: 'Bytes of decoded columns in memory.',
    read: ({ archive }) => [[archive.pool.bytes]],
  },
  {
    name: 'pool_pinned_bytes',
    type: 'gauge',
    help: 'Bytes of decoded columns in memory that running queries use.',
    read: ({ archive }) => [[archive.pool.pinnedBytes]],
  },
  {
    name: 'pool_limit_bytes',
    type: 'gauge',
    help: 'Upper limit of the bytes of decoded columns in memory (storage.cache).',
    read: ({ archive }) => [[archive.pool.bytesMax]],
  },
  {
    name: 'pool_evictions_total',
    type: 'counter',
    help: 'Decoded columns evicted from memory to make room for others.',
    read: ({ archive }) => [[archive.pool.evictions]],
  },
  {
    name: 'disk_size_bytes',
    type: 'gauge',
    help: 'Bytes of the disk that holds the data folder.',
    read: ({ archive: { disk } }) => (disk === null ? [] : [[disk.sizeBytes]]),
  },
  {
    name: 'disk_free_bytes',
    type: 'gauge',
    help: 'Free bytes on the disk that holds the data folder, as far as the server may use them.',
    read: ({ archive: { disk } }) => (disk === null ? [] : [[disk.freeBytes]]),
  },
];
