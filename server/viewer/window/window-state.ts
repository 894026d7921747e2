import type { Failure } from '../api/failure.js';
import type { LogRecord } from '../records/record.js';

/** Records that stand one after another in the archive, as one question finds them. */
export interface Page {
  /** What it is known by while it is shown. */
  readonly key: string;
  readonly records: readonly LogRecord[];
}

/** What lies behind an end of the window. */
export type EdgeState =
  | { readonly kind: 'more' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** Where the table is to be scrolled to. Each wish is an object of its own, and is granted once. */
export interface Place {
  /** The record that is to be in sight; undefined for the newest end. */
  readonly cursor?: string | undefined;
  readonly align: 'start' | 'center' | 'newest' | 'oldest';
}

/** What the table shows: a run of the records that match, out of an archive of any size. */
export interface WindowState {
  readonly pages: readonly Page[];
  readonly older: EdgeState;
  readonly newer: EdgeState;
  /** `loading`: what is shown, if anything, is of the question before. */
  readonly status: 'loading' | 'ready' | 'failed';
  readonly failure?: Failure | undefined;
  readonly place: Place;
  /** What the last page cost, as the server says it. */
  readonly timing: string;
}

/** An end of the window. */
export type Edge = 'older' | 'newer';

/** Records of one page that is asked for: more than fit on a screen, and few enough to be put into the page between two frames. */
export const pageRecords = 50;
/** Records in the window: a few screens on either side of the one in sight. More would slow each change of the page down. */
export const windowRecordsMax = 600;
/** Characters of all lines in the window; records of a megabyte each fill it long before their number does. */
export const windowCharsMax = 24 * 1024 * 1024;

/** A window that has asked for nothing yet. */
export const emptyWindow: WindowState = {
  pages: [],
  older: { kind: 'loading' },
  newer: { kind: 'loading' },
  status: 'loading',
  place: { align: 'newest' },
  timing: '',
};

/** The records of a window, the oldest first. */
export function recordsIn({ pages }: WindowState): readonly LogRecord[] {
  return pages.flatMap(({ records }) => records);
}

/** The record next to an edge. */
export function recordAt({ pages }: WindowState, edge: Edge): LogRecord | undefined {
  return edge === 'older' ? pages[0]?.records[0] : pages.at(-1)?.records.at(-1);
}

/** A record of the window by its cursor. */
export function recordBy({ pages }: WindowState, cursor: string): LogRecord | undefined {
  for (const { records } of pages) {
    const found = records.find((record) => record.cursor === cursor);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The record that many places towards the newer end of another one; undefined beyond the window. */
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
 * Leaves pages out at one end until the rest is within the bounds. At least two stay: the one at the other end and the one next to it, of
 * which something is in sight.
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

/** Records put behind the newest page, or into it while it is short, so that a slow stream makes few pages. */
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

/** A page of records, of which there is at least one. */
export function pageOf(records: readonly LogRecord[]): Page {
  return { key: records[0]!.cursor, records };
}
