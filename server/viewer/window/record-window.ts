import { signal, type ReadonlySignal } from '@preact/signals';
import { failureOfError, isAborted } from '../api/failure.js';
import { pageRecords, type PageAsk } from '../api/first-requests.js';
import type { PageAnswer } from '../api/record-pages.js';
import { cursorBehind, firstCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import {
  emptyWindow,
  pageOf,
  recordAt,
  trimmed,
  withNewer,
  type Edge,
  type EdgeState,
  type Page,
  type Place,
  type WindowState,
} from './window-state.js';

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
  /** The greatest cursor that is known to exist. A page that ends before it is not the last one. */
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
    if (newest > this.knownNewest) this.knownNewest = newest;
    if (status !== 'ready') return 0;
    const last = recordAt(this.current.value, 'newer')?.cursor ?? firstCursor;
    const fresh = records.filter(({ cursor }) => cursor > last);
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
    return isEnd && (edge === 'older' || last >= this.knownNewest);
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
      this.set({ pages: [], status: 'failed', failure: failureOfError(error) });
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
