import type { CollectLog, LogFacts } from '../../../agents/collect/logs/collect-log.js';
import type { AgentDefinition, Retention } from '../../../agents/definition/definition.js';
import {
  assertNever,
  type OverCount,
  type PolicyCause,
  type RetentionEvent,
  type RetentionOutlook,
  type RetentionPolicy,
  type Taken,
} from '../../../engine/index.js';
import { formatBytes, formatCount, formatCounted, formatPeriod, formatTime } from '../output/figures.js';

const hourMs = 3_600_000;

/** The retention of an agent whose file has none: records are kept for ever. */
const keptForEver: Retention = { periodMs: null, bytesMax: null, intervalMs: hourMs, graceMs: 24 * hourMs };

/** Why expired records are not removed yet: so old a backlog may be the result of a wrong clock. */
const whyRetentionWaits =
  'some records have been over the retention limit for more than a week, so retention waits';

/** The retention of an agent's file, or the default. */
export function retentionOf({ retention }: AgentDefinition): Retention {
  return retention ?? keptForEver;
}

/** How long, and how much, a policy keeps. */
function describePolicy({ periodMs, bytesMax }: RetentionPolicy): string {
  if (periodMs === null && bytesMax === null) return 'all records for ever';
  const period = periodMs === null ? 'records of any age' : `records for ${formatPeriod(periodMs)}`;
  return bytesMax === null ? period : `${period}, at most ${formatBytes(bytesMax)}`;
}

/** The retention of an agent's file, for people. */
export function describeRetention(retention: Retention | undefined): string {
  const { periodMs, bytesMax, intervalMs } = retention ?? keptForEver;
  if (periodMs === null && bytesMax === null) return 'all records for ever (there is no retention.period)';
  const period =
    periodMs === null
      ? 'records of any age (there is no retention.period)'
      : `records for ${formatPeriod(periodMs)}`;
  const size = bytesMax === null ? [] : [`at most ${formatBytes(bytesMax)}`];
  return [period, ...size, `looks every ${formatPeriod(intervalMs)}`].join(', ');
}

/** For example `199 of 200 records of 2026-05-07 06:00:00 to 2026-11-22 07:00:00 UTC`. */
function describeOver(over: OverCount, all: number): string {
  return `${formatCount(over.records)} of ${formatCounted(all, 'record')}${describeSpan(over)}`;
}

function describeSpan({ fromMs, toMs }: Pick<OverCount, 'fromMs' | 'toMs'>): string {
  return fromMs === null ? '' : ` of ${formatTime(fromMs)} to ${formatTime(toMs)} UTC`;
}

/** Lines that say which stored records a changed retention would remove, and when. Empty where the retention in force is the wanted one. */
export function describeChange(agent: string, wanted: Retention, outlook: RetentionOutlook): string[] {
  const { kept, over, records } = outlook;
  const { pending } = kept;
  const isWanted = ({ periodMs, bytesMax }: RetentionPolicy): boolean =>
    periodMs === wanted.periodMs && bytesMax === wanted.bytesMax;
  if (isWanted(kept) && pending === undefined) return [];
  const due =
    pending !== undefined && isWanted(pending)
      ? `${formatTime(pending.sinceMs + pending.graceMs)} UTC`
      : `${formatPeriod(wanted.graceMs)} after a server has read the file`;
  const what = isWanted(kept)
    ? `${whyRetentionWaits}: it will remove`
    : `so far it has kept ${describePolicy(kept)}; the change removes`;
  return [
    `${what} ${describeOver(over, records)},`,
    `but not before ${due}; to remove them now: "logstrata retention apply ${agent}"`,
  ];
}

/** Pairs of a label and a text about the policy in force, and about the one that follows, if any. */
export function describePolicyInForce({ kept, over, records }: RetentionOutlook): [string, string][] {
  const { pending } = kept;
  const now: [string, string] = ['keeps', describePolicy(kept)];
  if (pending === undefined) return [now];
  const due = formatTime(pending.sinceMs + pending.graceMs);
  const what = `${describePolicy(pending)}: removes ${describeOver(over, records)}`;
  return [now, [`  from ${due} UTC`, pending.leapt === true ? `${what}; ${whyRetentionWaits}` : what]];
}

const causes: Readonly<Record<PolicyCause, string>> = {
  back: 'no records are waiting to be removed any more',
  looser: 'the change removes no record that was kept before',
  grace: 'retention.grace has passed',
  applied: '"logstrata retention apply" was run',
  disk_low: 'less than a tenth of the disk is free, so retention.grace is cut short',
};

/** An entry of the log about retention. */
export interface RetentionEntry {
  readonly level: 'info' | 'warn';
  readonly facts: LogFacts;
  readonly message: string;
}

/** The log entry of an event of retention. */
export function retentionEntry(event: RetentionEvent): RetentionEntry {
  const { agent, policy } = event;
  switch (event.kind) {
    case 'taken': {
      const { taken } = event;
      const lines =
        taken.rejectedLines === 0 ? '' : ` and ${formatCounted(taken.rejectedLines, 'rejected line')}`;
      const what = `${formatCounted(taken.records, 'record')}${describeSpan(taken)}${lines}`;
      return {
        level: 'info',
        facts: { agent, ...takenFacts(taken) },
        message: `retention removed ${what}; the agent keeps ${describePolicy(policy)}`,
      };
    }
    case 'in_force':
      return {
        level: event.cause === 'disk_low' ? 'warn' : 'info',
        facts: { agent },
        message: `from now on the agent keeps ${describePolicy(policy)}: ${causes[event.cause]}`,
      };
    case 'pending': {
      const { over, records, inForce, dueMs, leapt } = event;
      const why = leapt
        ? `${whyRetentionWaits}: the clock was set ahead, no records arrived for a long time, or the records that arrived are old. It will remove`
        : `the agent's file keeps ${describePolicy(policy)} now, and has kept ${describePolicy(inForce)} so far. The change removes`;
      const undo = leapt ? 'you can correct the clock' : 'you can undo the change';
      return {
        level: 'warn',
        facts: { agent, records: over.records, of: records, ...spanFacts(over), due: isoTime(dueMs) },
        message:
          `${why} ${describeOver(over, records)}, but not before ${formatTime(dueMs)} UTC. Until then ${undo}; ` +
          `to remove them now: "logstrata retention apply ${agent}"`,
      };
    }
    default:
      return assertNever(event);
  }
}

/** Logs an event of an agent's retention. */
export function logRetention(log: Pick<CollectLog, 'info' | 'warn'>, event: RetentionEvent): void {
  const { level, facts, message } = retentionEntry(event);
  log[level](facts, message);
}

function takenFacts({ records, rejectedLines, segments, bytes, ...span }: Taken): LogFacts {
  return { records, rejectedLines, files: segments, bytes, ...spanFacts(span) };
}

function spanFacts({ fromMs, toMs }: Pick<OverCount, 'fromMs' | 'toMs'>): LogFacts {
  return { from: isoTime(fromMs), to: isoTime(toMs) };
}

function isoTime(timeMs: number | null): string | null {
  return timeMs === null ? null : `${formatTime(timeMs).replace(' ', 'T')}Z`;
}
