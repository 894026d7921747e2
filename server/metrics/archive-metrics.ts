import type { AgentFigures } from '../../engine/index.js';
import type { Metric, Sample } from './metric.js';

type Read = (agent: AgentFigures) => number;

function byAgent(type: Metric['type'], name: string, help: string, read: Read): Metric {
  return {
    name,
    type,
    help,
    labels: ['agent'],
    *read({ archive }) {
      for (const figures of archive.agents) yield [read(figures), figures.agent];
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

/** Of those that compact by themselves. */
function ofCompaction(
  name: string,
  help: string,
  read: (counts: NonNullable<AgentFigures['compaction']>) => number,
): Metric {
  return {
    name,
    type: 'counter',
    help,
    labels: ['agent'],
    *read({ archive }) {
      for (const { agent, compaction } of archive.agents)
        if (compaction !== undefined) yield [read(compaction), agent];
    },
  };
}

/** Of those that ship to a far tier by themselves. */
function ofShipping(
  name: string,
  help: string,
  read: (counts: NonNullable<AgentFigures['shipping']>) => number,
): Metric {
  return {
    name,
    type: 'counter',
    help,
    labels: ['agent'],
    *read({ archive }) {
      for (const { agent, shipping } of archive.agents)
        if (shipping !== undefined) yield [read(shipping), agent];
    },
  };
}

/** What is stored, and what becomes of it. */
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
  ofCompaction('compactions_total', 'Rewrites in the background.', ({ rewrites }) => rewrites),
  ofCompaction('compactions_failed_total', 'Rewrites that failed.', ({ failed }) => failed),
  ofCompaction(
    'compaction_read_segments_total',
    'Segments that rewrites replaced.',
    ({ segmentsRead }) => segmentsRead,
  ),
  ofCompaction(
    'compaction_written_segments_total',
    'Segments that rewrites made.',
    ({ segmentsWritten }) => segmentsWritten,
  ),
  ofCompaction(
    'compaction_read_bytes_total',
    'Bytes of the segments replaced.',
    ({ bytesRead }) => bytesRead,
  ),
  ofCompaction(
    'compaction_written_bytes_total',
    'Bytes of the segments made.',
    ({ bytesWritten }) => bytesWritten,
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
  ofShipping('far_shipped_units_total', 'Units shipped to the far tier.', ({ shipped }) => shipped),
  ofShipping('far_shipped_records_total', 'Records in these units.', ({ rows }) => rows),
  ofShipping('far_shipped_bytes_total', 'Bytes sent for them.', ({ bytes }) => bytes),
  ofShipping('far_failures_total', 'Times that shipping failed.', ({ failed }) => failed),
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
