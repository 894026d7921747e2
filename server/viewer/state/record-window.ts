import { signal, type ReadonlySignal } from '@preact/signals';
import { type Failure, failureOfError, isAborted } from './failure.js';
import { pageRecords, type PageAsk } from './first-requests.js';
import { type LogRecord, cursorBehind, firstCursor, isBehind, isSameRecord } from './record.js';
import type { PageAnswer } from './record-stream.js';

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
    const found = records.find((record) => isSameRecord(record.cursor, cursor));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The record `by` places after another one (before it where negative); undefined outside the window. */
export function neighbour(state: WindowState, cursor: string, by: number): LogRecord | undefined {
  const records = recordsIn(state);
  const at = records.findIndex((record) => isSameRecord(record.cursor, cursor));
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
function trimmed(pages: readonly Page[], from: Edge): readonly Page[] {
  let kept = pages;
  for (;;) {
    const { records, chars } = sizeOf(kept);
    const isWithin = records <= windowRecordsMax && chars <= windowCharsMax;
    if (isWithin || kept.length <= 2) return kept;
    kept = from === 'older' ? kept.slice(1) : kept.slice(0, -1);
  }
}

/** Appends records to the newest page while it is not full, then as new pages, so that a slow stream does not make many small pages. */
function withNewer(pages: readonly Page[], records: readonly LogRecord[]): readonly Page[] {
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
function pageOf(records: readonly LogRecord[]): Page {
  return { key: records[0]!.cursor, records };
}

/** Requests a page of the question that the window shows. */
export type AskForPage = (ask: PageAsk, signal: AbortSignal) => Promise<PageAnswer>;

const edgeOf = (isEnd: boolean): EdgeState => ({ kind: isEnd ? 'end' : 'more' });

/**
 * A window over all records that match a question. It moves by cursors: each page begins after the last record of the previous one, so no
 * record is skipped or repeated, however many have the same time. The window never exceeds its bounds (`trimmed`).
 */
export class RecordWindow {
  private readonly current = signal<WindowState>(emptyWindow);
  private ask: AskForPage | undefined;
  private opening = new AbortController();
  /** The newest cursor that is known to exist. A page that ends before it is not the last one. */
  private knownNewest = firstCursor;

  get state(): ReadonlySignal<WindowState> {
    return this.current;
  }

  /** Sets the question. The shown records stay until the next `open…` has its response. */
  reset(ask: AskForPage): void {
    this.ask = ask;
    this.knownNewest = firstCursor;
  }

  /** Shows the newest records. */
  openNewest(): Promise<void> {
    return this.open(async (ask, signal) => {
      const { records, isEnd, timing } = await ask({ limit: pageRecords }, signal);
      return { ...windowOf([records], isEnd, true, { align: 'newest' }), timing };
    });
  }

  /** Shows the oldest records. */
  openOldest(): Promise<void> {
    return this.openFrom(firstCursor, 'oldest');
  }

  /** Shows the first records after a cursor; the newest ones where there are none. */
  openFrom(cursor: string, align: 'start' | 'oldest' = 'start'): Promise<void> {
    return this.open(async (ask, signal) => {
      const { records, isEnd, timing } = await ask({ limit: pageRecords, after: cursor }, signal);
      if (records.length === 0 && cursor !== firstCursor) {
        const newest = await ask({ limit: pageRecords }, signal);
        return { ...windowOf([newest.records], newest.isEnd, true, { align: 'newest' }), timing };
      }
      const place: Place = { align, cursor: records[0]?.cursor };
      return { ...windowOf([records], cursor === firstCursor, isEnd, place), timing };
    });
  }

  /** Shows a record in the middle, with its neighbours on both sides. */
  openAround(cursor: string): Promise<void> {
    return this.open(async (ask, signal) => {
      const [older, newer] = await Promise.all([
        ask({ limit: pageRecords, before: cursorBehind(cursor) }, signal),
        ask({ limit: pageRecords, after: cursor }, signal),
      ]);
      const place: Place = { align: 'center', cursor };
      const pages = [older.records, newer.records];
      return { ...windowOf(pages, older.isEnd, newer.isEnd, place), timing: older.timing };
    });
  }

  /**
   * Adds a page at an edge, and drops pages at the other one where the window is too large. Does nothing where there are no more records,
   * or a request is running.
   */
  async extend(edge: Edge): Promise<void> {
    const before = this.current.value;
    const next = recordAt(before, edge);
    const { ask } = this;
    const isOpen =
      before.status === 'ready' && (before[edge].kind === 'more' || before[edge].kind === 'failed');
    if (!isOpen || next === undefined || ask === undefined) return;
    const { signal: abortSignal } = this.opening;
    this.set({ [edge]: { kind: 'loading' } });
    try {
      const side = edge === 'older' ? { before: next.cursor } : { after: next.cursor };
      const { records, isEnd, timing } = await ask({ limit: pageRecords, ...side }, abortSignal);
      if (abortSignal.aborted) return;
      this.add(edge, records, isEnd, timing);
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return;
      this.set({ [edge]: { kind: 'failed', failure: failureOfError(error) } });
    }
  }

  /**
   * Takes records of the live stream. Where the window includes the newest records and `isShown` is set, they are added; else the window
   * only notes that there are more. Returns the number of records added.
   */
  take(records: readonly LogRecord[], isShown: boolean): number {
    const { status, newer, pages } = this.current.value;
    const newest = records.at(-1)?.cursor ?? firstCursor;
    if (isBehind(newest, this.knownNewest)) this.knownNewest = newest;
    if (status !== 'ready') return 0;
    const last = recordAt(this.current.value, 'newer')?.cursor ?? firstCursor;
    const fresh = records.filter(({ cursor }) => isBehind(cursor, last));
    if (newer.kind !== 'end' || fresh.length === 0) return 0;
    if (!isShown) {
      this.set({ newer: { kind: 'more' } });
      return 0;
    }
    const all = withNewer(pages, fresh);
    const kept = trimmed(all, 'older');
    const older = kept.length < all.length ? edgeOf(false) : this.current.value.older;
    this.set({ pages: kept, older });
    return fresh.length;
  }

  /** Aborts running requests. */
  close(): void {
    this.opening.abort();
  }

  private add(edge: Edge, records: readonly LogRecord[], isEnd: boolean, timing: string): void {
    const { pages } = this.current.value;
    if (records.length === 0) return this.set({ [edge]: edgeOf(this.isNewestKnown(edge, isEnd)), timing });
    const page = pageOf(records);
    const all: readonly Page[] = edge === 'older' ? [page, ...pages] : [...pages, page];
    const far: Edge = edge === 'older' ? 'newer' : 'older';
    const kept = trimmed(all, far);
    this.set({ pages: kept, timing, ...(kept.length < all.length ? { [far]: edgeOf(false) } : {}) });
    this.set({ [edge]: edgeOf(this.isNewestKnown(edge, isEnd)) });
  }

  /** Whether an edge is really the end. A page may have been read just before a record was stored that the stream has reported since. */
  private isNewestKnown(edge: Edge, isEnd: boolean): boolean {
    const last = recordAt(this.current.value, 'newer')?.cursor ?? firstCursor;
    return isEnd && (edge === 'older' || !isBehind(this.knownNewest, last));
  }

  private async open(
    read: (ask: AskForPage, signal: AbortSignal) => Promise<Partial<WindowState>>,
  ): Promise<void> {
    this.opening.abort();
    this.opening = new AbortController();
    const { signal: abortSignal } = this.opening;
    const { ask } = this;
    if (ask === undefined) return;
    this.set({ status: 'loading', failure: undefined });
    try {
      const opened = await read(ask, abortSignal);
      if (abortSignal.aborted) return;
      this.set({ ...opened, status: 'ready' });
      const { newer } = this.current.value;
      if (newer.kind === 'end') this.set({ newer: edgeOf(this.isNewestKnown('newer', true)) });
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return;
      this.set({ pages: [], status: 'failed', failure: failureOfError(error), timing: '' });
    }
  }

  private set(change: Partial<WindowState>): void {
    this.current.value = { ...this.current.value, ...change };
  }
}

function windowOf(
  lists: readonly (readonly LogRecord[])[],
  isOldest: boolean,
  isNewest: boolean,
  place: Place,
): Partial<WindowState> {
  const pages = lists.filter((records) => records.length > 0).map(pageOf);
  return { pages, older: edgeOf(isOldest), newer: edgeOf(isNewest), place };
}
