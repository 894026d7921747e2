import type { Failure } from '../api/failure.js';
import { pageRecords } from '../api/first-requests.js';
import type { LogRecord } from '../records/record.js';

/** Consecutive records among those that match a question. */
export interface Page {
  /** Identifies the page while it is shown. */
  readonly key: string;
  readonly records: readonly LogRecord[];
}

/** What is beyond an edge of the window. */
export type EdgeState =
  | { readonly kind: 'more' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** Where to scroll the table. Each object is a request of its own, and is carried out once. */
export interface Place {
  /** The record to scroll to; undefined for the newest end. */
  readonly cursor?: string | undefined;
  readonly align: 'start' | 'center' | 'newest' | 'oldest';
}

/** What the table shows: a range of the matching records of an archive of any size. */
export interface WindowState {
  readonly pages: readonly Page[];
  readonly older: EdgeState;
  readonly newer: EdgeState;
  /** While `loading`, the shown records are those of the previous question. */
  readonly status: 'loading' | 'ready' | 'failed';
  readonly failure?: Failure | undefined;
  readonly place: Place;
  /** The `Server-Timing` of the last page. */
  readonly timing: string;
}

/** An edge of the window. */
export type Edge = 'older' | 'newer';

/** Maximum number of records in the window: a few screens on each side of the visible one. More would slow down each update of the page. */
export const windowRecordsMax = 600;
/**
 * Maximum number of characters of all lines in the window. Records of a megabyte each reach this bound long before the number of records is
 * reached.
 */
export const windowCharsMax = 24 * 1024 * 1024;

/** The window before its first response. */
export const emptyWindow: WindowState = {
  pages: [],
  older: { kind: 'loading' },
  newer: { kind: 'loading' },
  status: 'loading',
  place: { align: 'newest' },
  timing: '',
};

/** The records of a window, oldest first. */
export function recordsIn({ pages }: WindowState): readonly LogRecord[] {
  return pages.flatMap(({ records }) => records);
}

/** The record at an edge. */
export function recordAt({ pages }: WindowState, edge: Edge): LogRecord | undefined {
  return edge === 'older' ? pages[0]?.records[0] : pages.at(-1)?.records.at(-1);
}

/** The record of the window with this cursor. */
export function recordBy({ pages }: WindowState, cursor: string): LogRecord | undefined {
  for (const { records } of pages) {
    const found = records.find((record) => record.cursor === cursor);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The record `by` places after another one (before it where negative); undefined outside the window. */
export function neighbour(state: WindowState, cursor: string, by: number): LogRecord | undefined {
  const records = recordsIn(state);
  const at = records.findIndex((record) => record.cursor === cursor);
  return at < 0 ? undefined : records[at + by];
}

function sizeOf(pages: readonly Page[]): { records: number; chars: number } {
  let records = 0;
  let chars = 0;
  for (const page of pages) {
    records += page.records.length;
    for (const { line } of page.records) chars += line.length;
  }
  return { records, chars };
}

/**
 * Drops pages at one end until the window is within its bounds. At least two pages stay: the last one at the other end and its neighbour,
 * as parts of both may be visible.
 */
export function trimmed(pages: readonly Page[], from: Edge): readonly Page[] {
  let kept = pages;
  for (;;) {
    const { records, chars } = sizeOf(kept);
    const isWithin = records <= windowRecordsMax && chars <= windowCharsMax;
    if (isWithin || kept.length <= 2) return kept;
    kept = from === 'older' ? kept.slice(1) : kept.slice(0, -1);
  }
}

/** Appends records to the newest page while it is not full, then as new pages, so that a slow stream does not make many small pages. */
export function withNewer(pages: readonly Page[], records: readonly LogRecord[]): readonly Page[] {
  const last = pages.at(-1);
  const all = [...pages];
  let rest = records;
  if (last !== undefined && last.records.length < pageRecords) {
    const room = pageRecords - last.records.length;
    all[all.length - 1] = { ...last, records: [...last.records, ...rest.slice(0, room)] };
    rest = rest.slice(room);
  }
  for (let i = 0; i < rest.length; i += pageRecords) all.push(pageOf(rest.slice(i, i + pageRecords)));
  return all;
}

/** A page of records; there must be at least one. */
export function pageOf(records: readonly LogRecord[]): Page {
  return { key: records[0]!.cursor, records };
}
