import type { AskForPage } from '../window/record-window.js';
import { firstCursor, hourOfCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import type { Extent, Span } from '../query/time-range.js';

const hourMs = 3_600_000;

/** When a record was made; the hour of its place where it does not say. */
export function timeOfRecord(record: LogRecord, timeField: string | undefined): number {
  const value = timeField === undefined ? undefined : record.values.get(timeField);
  return typeof value === 'number' ? value : hourOfCursor(record.cursor);
}

/** What is known of an agent's records before anything is asked of them. */
export interface KnownRecords {
  /**
   * The times between which they lie: a range that is open at an end is drawn from there. Undefined where there are none. The places
   * of records are by whole hours, so within the hours at both ends a few may lie outside.
   */
  readonly extent: Extent | undefined;
  /** The newest ones. */
  readonly sample: readonly LogRecord[];
}

/** Records that tell what the values of fields are like. */
const sampleRecords = 100;

/** Looks at the first and the newest records of an agent, whatever is asked for. */
export async function askKnownRecords(
  ask: AskForPage,
  timeField: string | undefined,
  signal: AbortSignal,
): Promise<KnownRecords> {
  const [first, last] = await Promise.all([
    ask({ limit: 1, after: firstCursor }, signal),
    ask({ limit: sampleRecords }, signal),
  ]);
  const [oldest] = first.records;
  const newest = last.records.at(-1);
  if (oldest === undefined || newest === undefined) return { extent: undefined, sample: [] };
  const sinceMs = Math.min(timeOfRecord(oldest, timeField), hourOfCursor(oldest.cursor) + hourMs);
  const untilMs = Math.max(timeOfRecord(newest, timeField), hourOfCursor(newest.cursor));
  const extent = { sinceMs: Math.min(sinceMs, untilMs), untilMs: Math.max(sinceMs, untilMs) + 1 };
  return { extent, sample: last.records };
}

/** The times that are drawn for a range: its own ends, and for an open one that of the records. */
export function drawnExtent({ sinceMs, untilMs }: Span, records: Extent | undefined, nowMs: number): Extent {
  const from = sinceMs ?? Math.min(records?.sinceMs ?? nowMs - hourMs, untilMs ?? Infinity);
  const newest = records === undefined ? nowMs : Math.max(records.untilMs, from + 1);
  // A range that began a while ago ends now, not at its newest record: how long nothing came is to be seen.
  const until = untilMs ?? (sinceMs === undefined ? newest : Math.max(newest, nowMs));
  return { sinceMs: from, untilMs: Math.max(until, from + 1) };
}
