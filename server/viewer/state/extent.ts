import type { AskForPage } from '../window/record-window.js';
import { firstCursor, hourOfCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import type { Extent, Span } from '../query/time-range.js';

const hourMs = 3_600_000;

/** The time of a record; the hour of its cursor where it has no time. */
export function timeOfRecord(record: LogRecord, timeField: string | undefined): number {
  const value = timeField === undefined ? undefined : record.values.get(timeField);
  return typeof value === 'number' ? value : hourOfCursor(record.cursor);
}

/** What the page learns about an agent's records whatever the question is. */
export interface KnownRecords {
  /**
   * The time range of all records, which the histogram shows for an unbounded range. Undefined where there are no records. Records are
   * ordered by whole hours only, so some records of the first and last hour may be outside.
   */
  readonly extent: Extent | undefined;
  /** The newest records. */
  readonly sample: readonly LogRecord[];
}

/** Number of records that are sampled to learn about the values of fields. */
const sampleRecords = 100;

/** Requests the first and the newest records of an agent, without filters. */
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

/** The time range that the histogram shows for a span; unbounded ends are replaced by those of the records. */
export function drawnExtent({ sinceMs, untilMs }: Span, records: Extent | undefined, nowMs: number): Extent {
  const from = sinceMs ?? Math.min(records?.sinceMs ?? nowMs - hourMs, untilMs ?? Infinity);
  const newest = records === undefined ? nowMs : Math.max(records.untilMs, from + 1);
  // A range that is bounded only at its start ends now, not at the newest record, so that a time without records is visible. Records with a
  // later time extend it to at most twice its length: one record far in the future would leave no room for the others.
  const latest = Math.max(nowMs, Math.min(newest, nowMs + Math.max(0, nowMs - from)));
  const until = untilMs ?? (sinceMs === undefined ? newest : latest);
  return { sinceMs: from, untilMs: Math.max(until, from + 1) };
}
