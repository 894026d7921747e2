import { metricsOf, type Metric } from './metric.js';

const codecs = ['lz4', 'zstd'] as const;

/** Metrics of stored records and of background work. */
export const archiveMetrics: readonly Metric[] = [
  ...metricsOf(['agent'], ({ archive }) => archive.agents.map((figures) => [figures, figures.agent]), {
    damaged: [
      '1 if the records of the agent cannot be read because a file is damaged, else 0.',
      ({ isDamaged }) => Number(isDamaged),
    ],
    records: ['Stored records, sealed and hot, without those in attached files.', ({ records }) => records],
    hot_records: ['Records that are not sealed yet.', ({ hotRecords }) => hotRecords],
    hot_bytes: ['Bytes of hot segments.', ({ hotBytes }) => hotBytes],
    rejected_kept_bytes: ['Bytes of stored rejected lines.', ({ rejectedBytes }) => rejectedBytes],
    attached_files: ['Attached archive files, which are queried in place.', (agent) => agent.attachedFiles],
    attached_records: ['Records in attached archive files.', ({ attachedRecords }) => attachedRecords],
    stored_records_total: ['Records stored over the life of the agent.', ({ counters }) => counters.records],
    stored_input_bytes_total: [
      'Bytes of the stored lines, over the life of the agent.',
      ({ counters }) => counters.inputBytes,
    ],
    rejected_lines_total: ['Lines rejected over the life of the agent.', ({ counters }) => counters.rejected],
    unreadable_values_total: [
      'Values stored as null because their text does not fit the type of the field, over the life of the agent.',
      ({ counters }) => counters.unreadableValues,
    ],
    replaced_sequences_total: [
      'Invalid UTF-8 sequences replaced by U+FFFD, over the life of the agent.',
      ({ counters }) => counters.replacedBytes,
    ],
    commits_total: ['Batches and manifests written durably to the disk.', ({ commits }) => commits.done],
    commits_failed_total: ['Commits that failed because of a disk error.', ({ commits }) => commits.failed],
    compactions_total: ['Segment rewrites done in the background.', (agent) => agent.compaction?.rewrites],
    compactions_failed_total: ['Segment rewrites that failed.', ({ compaction }) => compaction?.failed],
    compaction_read_segments_total: [
      'Segments replaced by rewrites.',
      ({ compaction }) => compaction?.segmentsRead,
    ],
    compaction_written_segments_total: [
      'Segments written by rewrites.',
      ({ compaction }) => compaction?.segmentsWritten,
    ],
    compaction_read_bytes_total: [
      'Bytes of the segments replaced by rewrites.',
      ({ compaction }) => compaction?.bytesRead,
    ],
    compaction_written_bytes_total: [
      'Bytes of the segments written by rewrites.',
      ({ compaction }) => compaction?.bytesWritten,
    ],
    far_records: ['Records with a copy in the far tier.', ({ farRecords }) => farRecords],
    far_only_records: ['Records stored only in the far tier.', ({ farOnlyRecords }) => farOnlyRecords],
    far_leftovers: ['Leftover attempts in the far tier, to be dropped.', ({ farLeftovers }) => farLeftovers],
    far_shipped_units_total: ['Units shipped to the far tier.', ({ shipping }) => shipping?.shipped],
    far_shipped_records_total: [
      'Records in the units shipped to the far tier.',
      (agent) => agent.shipping?.rows,
    ],
    far_shipped_bytes_total: ['Bytes sent to the far tier.', ({ shipping }) => shipping?.bytes],
    far_failures_total: ['Failed attempts to ship to the far tier.', ({ shipping }) => shipping?.failed],
    reader_lag_seconds: [
      "Age of the writer's state that this reader answers from, in seconds.",
      ({ lagMs }) => (lagMs === undefined ? undefined : lagMs / 1000),
    ],
    retention_records_total: [
      'Records removed by retention over the life of the agent.',
      ({ retired }) => retired.records,
    ],
    retention_segments_total: [
      'Segments removed by retention over the life of the agent.',
      ({ retired }) => retired.segments,
    ],
    retention_bytes_total: [
      'Bytes of the segments removed by retention over the life of the agent.',
      ({ retired }) => retired.bytes,
    ],
  }),
  ...metricsOf(
    ['agent', 'codec'],
    ({ archive }) =>
      archive.agents.flatMap(({ agent, segments }) =>
        codecs.map((codec) => [segments[codec], agent, codec] as const),
      ),
    {
      segments: ['Sealed segments.', ({ files }) => files],
      segment_bytes: ['Bytes of sealed segments.', ({ bytes }) => bytes],
    },
  ),
  ...metricsOf([], ({ archive }) => [[archive.pool]], {
    pool_bytes: ['Bytes of decoded columns in memory.', ({ bytes }) => bytes],
    pool_pinned_bytes: [
      'Bytes of decoded columns in memory that running queries use.',
      ({ pinnedBytes }) => pinnedBytes,
    ],
    pool_limit_bytes: [
      'Upper limit of the bytes of decoded columns in memory (storage.cache).',
      ({ bytesMax }) => bytesMax,
    ],
    pool_evictions_total: [
      'Decoded columns evicted from memory to make room for others.',
      ({ evictions }) => evictions,
    ],
  }),
  ...metricsOf([], ({ archive: { disk } }) => [[disk]], {
    disk_size_bytes: ['Bytes of the disk that holds the data folder.', (disk) => disk?.sizeBytes],
    disk_free_bytes: [
      'Free bytes on the disk that holds the data folder, as far as the server may use them.',
      (disk) => disk?.freeBytes,
    ],
  }),
];
