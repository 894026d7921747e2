import { shownCharactersMax } from '../../engine/index.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import type { Metric, Sample, ServerFigures } from './metric.js';

function byAgent(
  type: Metric['type'],
  name: string,
  help: string,
  read: (status: CollectStatus) => number | null,
): Metric {
  return {
    name: `collect_${name}`,
    type,
    help,
    labels: ['agent'],
    *read({ collecting }) {
      for (const [agent, status] of Object.entries(collecting)) {
        const value = read(status);
        if (value !== null) yield [value, agent];
      }
    },
  };
}

/** The part of a reason for rejecting a line that many lines share: what follows a colon is about the one line. */
function kindOf(reason: string): string {
  return reason.split(':', 1)[0]!.slice(0, shownCharactersMax);
}

function* rejectedByReason({ collecting }: ServerFigures): Generator<Sample> {
  for (const [agent, { rejectedByReason: counts }] of Object.entries(collecting)) {
    const byKind = new Map<string, number>();
    for (const [reason, count] of Object.entries(counts))
      byKind.set(kindOf(reason), (byKind.get(kindOf(reason)) ?? 0) + count);
    for (const [kind, count] of byKind) yield [count, agent, kind];
  }
}

/** The state of archives of files, whether they are imported or attached. */
function* archives({
  importing,
  attaching,
}: ServerFigures): Generator<
  readonly [agent: string, { readonly filesLeft: number; readonly problems: number }]
> {
  yield* Object.entries(importing);
  yield* Object.entries(attaching);
}

/** Metrics of followed logs and of archives of files. */
export const collectMetrics: readonly Metric[] = [
  byAgent('counter', 'records_total', 'Records collected since the start.', ({ records }) => records),
  byAgent('counter', 'bytes_total', 'Bytes of lines collected since the start.', ({ bytes }) => bytes),
  byAgent('counter', 'commits_total', 'Commits of the collector since the start.', ({ commits }) => commits),
  byAgent(
    'gauge',
    'lag_bytes',
    'Bytes of followed logs that are not stored yet.',
    ({ lagBytes }) => lagBytes,
  ),
  byAgent('gauge', 'files', 'Followed log files.', ({ files }) => files.length),
  byAgent(
    'gauge',
    'failing_files',
    'Followed log files that cannot be read at present.',
    ({ files }) => files.filter(({ failure }) => failure !== null).length,
  ),
  byAgent(
    'gauge',
    'paused',
    '1 if collection is paused because nothing can be stored, else 0.',
    ({ paused }) => (paused === null ? 0 : 1),
  ),
  byAgent(
    'gauge',
    'checkpoint_timestamp_seconds',
    'Time of the last checkpoint, which records how far each log is stored.',
    ({ lastCommitMs }) => (lastCommitMs === null ? null : lastCommitMs / 1000),
  ),
  byAgent('counter', 'rotations_total', 'Logs rotated by the server.', ({ rotations }) => rotations),
  byAgent('counter', 'truncations_total', 'Log truncations seen.', ({ truncations }) => truncations),
  byAgent(
    'counter',
    'truncated_bytes_total',
    'Bytes known to be lost because a log was truncated before they were read.',
    ({ truncatedBytes }) => truncatedBytes,
  ),
  byAgent(
    'counter',
    'rejected_not_kept_lines_total',
    'Rejected lines not kept because rejected.max_bytes was reached.',
    ({ notKept }) => notKept,
  ),
  {
    name: 'collect_rejected_lines_total',
    type: 'counter',
    help: 'Lines of logs rejected since the start, by reason.',
    labels: ['agent', 'reason'],
    read: rejectedByReason,
  },
  {
    name: 'archive_files_left',
    type: 'gauge',
    help: 'Archive files still to be stored or attached.',
    labels: ['agent'],
    *read(figures) {
      for (const [agent, { filesLeft }] of archives(figures)) yield [filesLeft, agent];
    },
  },
  {
    name: 'archive_problems',
    type: 'gauge',
    help: 'Archive files and folders that cannot be read.',
    labels: ['agent'],
    *read(figures) {
      for (const [agent, { problems }] of archives(figures)) yield [problems, agent];
    },
  },
];
