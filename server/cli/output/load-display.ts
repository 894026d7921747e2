import type { FieldDefinition } from '../../../agents/definition/definition.js';
import type { FileReport, LoadEvent, LoadProgress, LoadSummary } from '../../../agents/load/load-report.js';
import { assertNever } from '../../../engine/index.js';
import { messageWithPlace } from './failure.js';
import { formatBytes, formatCount, formatCounted, formatRate, formatSpan } from './figures.js';
import { startProgress } from './progress.js';
import type { Progress } from './progress.js';
import { tell } from './terminal.js';

/** Milliseconds of work before its speed is used to estimate the time left. */
const timeLeftAfterMs = 500;

/** Shows the progress of a load on standard error: a bar, or lines, for the current file, and a line for each finished file. */
export class LoadDisplay {
  #progress: Progress | undefined;
  #phase: LoadProgress['phase'] | undefined;
  #phaseStartMs = 0;
  #phaseStartFraction = 0;

  /** Handles one event of a load. */
  show(event: LoadEvent): void {
    switch (event.kind) {
      case 'start': {
        const place = event.files === 1 ? '' : ` (${event.index + 1} of ${event.files})`;
        this.#progress = startProgress(`${event.path}${place}`);
        this.#phase = undefined;
        break;
      }
      case 'progress':
        this.#update(event);
        break;
      case 'end':
        this.stop();
        describeFile(event.report).forEach(tell);
        break;
      default:
        assertNever(event);
    }
  }

  /** Removes the progress of the current file from the screen. */
  stop(): void {
    this.#progress?.stop();
    this.#progress = undefined;
  }

  #update(event: LoadProgress): void {
    const nowMs = performance.now();
    if (event.phase !== this.#phase) {
      this.#phase = event.phase;
      this.#phaseStartMs = nowMs;
      this.#phaseStartFraction = event.fraction;
    }
    const elapsedMs = nowMs - this.#phaseStartMs;
    this.#progress?.update(event.fraction, this.#describe(event, elapsedMs));
  }

  #describe(event: LoadProgress, elapsedMs: number): string {
    const left = this.#timeLeft(event.fraction, elapsedMs);
    switch (event.phase) {
      case 'checking':
        return `checking what is already stored${left}`;
      case 'reading': {
        const size = `${formatBytes(event.fileBytesRead)} of ${formatBytes(event.fileBytes)}`;
        const rate = elapsedMs < timeLeftAfterMs ? '' : `, ${formatRate(event.records, elapsedMs)}`;
        return `${size}, ${formatCounted(event.records, 'record')}${rate}${left}`;
      }
      case 'writing':
        return `writing ${formatCounted(event.records, 'record')}${left}`;
      default:
        return assertNever(event.phase);
    }
  }

  #timeLeft(fraction: number, elapsedMs: number): string {
    const done = fraction - this.#phaseStartFraction;
    if (elapsedMs < timeLeftAfterMs || done <= 0) return '';
    return `, ${formatSpan((elapsedMs * (1 - fraction)) / done)} left`;
  }
}

/** The result of one file as a line; a line before it where records of earlier loads were restored. */
export function describeFile(file: FileReport): string[] {
  const { path, restored } = file;
  if (restored === 0) return describeOutcome(file);
  const back = formatCounted(restored, 'record');
  const line = `restored ${path}: ${back} that ${restored === 1 ? 'was' : 'were'} lost, under the same cursors`;
  return [line, ...describeOutcome(file)];
}

function describeOutcome(file: FileReport): string[] {
  switch (file.outcome) {
    case 'loaded': {
      const continued =
        file.continuedAt === null ? '' : ` from byte ${formatCount(file.continuedAt)} on, since it has grown`;
      const notKept = file.notKept === 0 ? '' : `, ${formatCount(file.notKept)} of them NOT KEPT`;
      const rejected =
        file.rejected === 0 ? '' : `, ${formatCounted(file.rejected, 'line')} rejected${notKept}`;
      const load = file.load === null ? '' : ` (load ${file.load})`;
      return [
        `loaded   ${file.path}${continued}: ${formatCounted(file.records, 'record')}${rejected}${load}`,
      ];
    }
    case 'known':
      return [`known    ${file.path}: already stored (--again stores it once more)`];
    case 'restored':
      return [];
    case 'still_rejected':
      return [`kept     ${file.path}: ${formatCounted(file.rejected, 'line')} still rejected`];
    case 'empty':
      return [`empty    ${file.path}`];
    case 'failed': {
      const { error } = file;
      const why =
        error === null ? 'unknown reason' : messageWithPlace(error.message, error.path, error.offset);
      return [`failed   ${why}`, `         ${file.path} was not stored`];
    }
    case 'not_stored':
      // The reason is one of the whole load, and is reported once at the end.
      return [`left out ${file.path}: it was not stored`];
    default:
      return assertNever(file.outcome);
  }
}

/** The totals of a load as lines for people. `rejectedFolder` is where rejected lines are kept. */
export function describeSummary(
  summary: LoadSummary,
  rejectedFolder: string,
  fields: readonly FieldDefinition[],
): string[] {
  const lines: string[] = [];
  if (summary.loaded > 0) {
    lines.push(
      `${formatCounted(summary.records, 'record')} of ${formatCounted(summary.loaded, 'file')} stored in ` +
        `${formatSpan(summary.seconds * 1000)}: ${formatBytes(summary.contentBytes)} of log, ` +
        `${formatRate(summary.records, summary.seconds * 1000)}, ${formatBytes(summary.bytesOnDisk)} on disk`,
    );
  }
  if (summary.restored > 0)
    lines.push(`${formatCounted(summary.restored, 'record')} of earlier loads restored`);
  lines.push(...describeLosses(summary, rejectedFolder, fields));
  if (
    summary.loaded + summary.restored === 0 &&
    summary.known > 0 &&
    summary.failed === 0 &&
    summary.stopped === null
  ) {
    lines.push('nothing to do: everything is already stored');
  }
  if (summary.failed > 0)
    lines.push(
      `${formatCounted(summary.failed, 'file')} failed and ${summary.failed === 1 ? 'was' : 'were'} not stored`,
    );
  return lines;
}

/** Lines about input that was not stored as it was: rejected lines, values that became null, and bytes that are not UTF-8. */
export function describeLosses(
  counts: Pick<
    LoadSummary,
    'rejected' | 'notKept' | 'unreadableValues' | 'unreadable' | 'replacedBytes' | 'nulBytes'
  >,
  rejectedFolder: string,
  fields: readonly FieldDefinition[],
): string[] {
  const lines: string[] = [];
  if (counts.rejected > 0) {
    const kept = counts.rejected - counts.notKept;
    const keptOf = counts.notKept === 0 ? 'kept' : `the first ${formatCount(kept)} kept`;
    lines.push(
      `${formatCounted(counts.rejected, 'line')} rejected, ${keptOf} in ${rejectedFolder}, with the reasons`,
    );
  }
  if (counts.notKept > 0) {
    lines.push(
      `WARNING  ${formatCounted(counts.notKept, 'rejected line')} were counted and NOT KEPT: rejected.max_bytes of the agent is reached. They are only in ` +
        'the files they were read from. To keep more, raise rejected.max_bytes in the agent file',
    );
  }
  if (counts.unreadableValues > 0) {
    const what = counts.unreadableValues === 1 ? 'its field' : 'their fields';
    lines.push(
      `${formatCounted(counts.unreadableValues, 'value')} did not fit the type of ${what} and became null:`,
      ...describeUnreadable(counts.unreadable, fields),
    );
  }
  if (counts.replacedBytes > 0) {
    lines.push(
      `${formatCounted(counts.replacedBytes, 'byte sequence')} that ${counts.replacedBytes === 1 ? 'was' : 'were'} not UTF-8 became U+FFFD`,
    );
  }
  if (counts.nulBytes > 0)
    lines.push(
      `${formatCounted(counts.nulBytes, 'NUL byte')} before lines left out, as of a file that was truncated`,
    );
  return lines;
}

/** Maximum number of fields that are listed. */
const fieldsShownMax = 10;

function describeUnreadable(
  unreadable: LoadSummary['unreadable'],
  fields: readonly FieldDefinition[],
): string[] {
  const most = unreadable.toSorted((a, b) => b.values - a.values);
  const lines = most.slice(0, fieldsShownMax).map(({ field, values, example }) => {
    const { name, type } = fields[field]!;
    return `  ${name} (${type}): ${formatCount(values)}, the first of them ${JSON.stringify(example)}`;
  });
  return most.length > lines.length ? [...lines, '  and other fields'] : lines;
}
