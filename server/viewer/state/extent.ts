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

/**
 * The times between which an agent has records: a range that is open at an end is drawn from there. Undefined where it has none. The places
 * of records are by whole hours, so within the hours at both ends a few may lie outside.
 */
export async function askExtent(
  ask: AskForPage,
  timeField: string | undefined,
  signal: AbortSignal,
): Promise<Extent | undefined> {
  const [first, last] = await Promise.all([
    ask({ limit: 1, after: firstCursor }, signal),
    ask({ limit: 1 }, signal),
  ]);
  const [oldest] = first.records;
  const [newest] = last.records;
  if (oldest === undefined || newest === undefined) return undefined;
  const sinceMs = Math.min(timeOfRecord(oldest, timeField), hourOfCursor(oldest.cursor) + hourMs);
  const untilMs = Math.max(timeOfRecord(newest, timeField), hourOfCursor(newest.cursor));
  return { sinceMs: Math.min(sinceMs, untilMs), untilMs: Math.max(sinceMs, untilMs) + 1 };
}

/** The times that are drawn for a range: its own ends, and for an open one that of the records. */
export function drawnExtent({ sinceMs, untilMs }: Span, records: Extent | undefined, nowMs: number): Extent {
  const from = sinceMs ?? Math.min(records?.sinceMs ?? nowMs - hourMs, untilMs ?? Infinity);
  const newest = records === undefined ? nowMs : Math.max(records.untilMs, from + 1);
  // A range that began a while ago ends now, not at its newest record: how long nothing came is to be seen.
  const until = untilMs ?? (sinceMs === undefined ? newest : Math.max(newest, nowMs));
  return { sinceMs: from, untilMs: Math.max(until, from + 1) };
}
