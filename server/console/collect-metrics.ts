import { shownCharactersMax } from '../../engine/index.js';
import { metricsOf, type Metric, type ServerFigures } from './metric.js';

/** The part of a reason for rejecting a line that many lines share: what follows a colon is about the one line. */
function kindOf(reason: string): string {
  return reason.split(':', 1)[0]!.slice(0, shownCharactersMax);
}

function* rejectedByReason({ collecting }: ServerFigures): Generator<[number, string, string]> {
  for (const [agent, { rejectedByReason: counts }] of Object.entries(collecting)) {
    const byKind = new Map<string, number>();
    for (const [reason, count] of Object.entries(counts))
      byKind.set(kindOf(reason), (byKind.get(kindOf(reason)) ?? 0) + count);
    for (const [kind, count] of byKind) yield [count, agent, kind];
  }
}

/** Metrics of followed logs and of archives of files. */
export const collectMetrics: readonly Metric[] = [
  ...metricsOf(
    ['agent'],
    ({ collecting }) => Object.entries(collecting).map(([agent, status]) => [status, agent]),
    {
      collect_records_total: ['Records collected since the start.', ({ records }) => records],
      collect_bytes_total: ['Bytes of lines collected since the start.', ({ bytes }) => bytes],
      collect_commits_total: ['Commits of the collector since the start.', ({ commits }) => commits],
      collect_lag_bytes: ['Bytes of followed logs that are not stored yet.', ({ lagBytes }) => lagBytes],
      collect_files: ['Followed log files.', ({ files }) => files.length],
      collect_failing_files: [
        'Followed log files that cannot be read at present.',
        ({ files }) => files.filter(({ failure }) => failure !== null).length,
      ],
      collect_paused: [
        '1 if collection is paused because nothing can be stored, else 0.',
        ({ paused }) => (paused === null ? 0 : 1),
      ],
      collect_checkpoint_timestamp_seconds: [
        'Time of the last checkpoint, which records how far each log is stored.',
        ({ lastCommitMs }) => (lastCommitMs === null ? null : lastCommitMs / 1000),
      ],
      collect_rotations_total: ['Logs rotated by the server.', ({ rotations }) => rotations],
      collect_truncations_total: ['Log truncations seen.', ({ truncations }) => truncations],
      collect_truncated_bytes_total: [
        'Bytes known to be lost because a log was truncated before they were read.',
        ({ truncatedBytes }) => truncatedBytes,
      ],
      collect_rejected_not_kept_lines_total: [
        'Rejected lines not kept because rejected.max_bytes was reached.',
        ({ notKept }) => notKept,
      ],
    },
  ),
  ...metricsOf(['agent', 'reason'], rejectedByReason, {
    collect_rejected_lines_total: ['Lines of logs rejected since the start, by reason.', (lines) => lines],
  }),
  ...metricsOf(
    ['agent'],
    ({ importing, attaching }) =>
      [...Object.entries(importing), ...Object.entries(attaching)].map(([agent, status]) => [status, agent]),
    {
      archive_files_left: ['Archive files still to be stored or attached.', ({ filesLeft }) => filesLeft],
      archive_problems: ['Archive files and folders that cannot be read.', ({ problems }) => problems],
    },
  ),
];
