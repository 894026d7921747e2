import { signal, type ReadonlySignal } from '@preact/signals';
import { failureOfError, isAborted } from '../api/failure.js';
import type { PageAnswer, PageAsk } from '../api/record-pages.js';
import { cursorBehind, firstCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import {
  emptyWindow,
  pageOf,
  pageRecords,
  recordAt,
  trimmed,
  withNewer,
  type Edge,
  type EdgeState,
  type Page,
  type Place,
  type WindowState,
} from './window-state.js';

/** Asks for a page of what the window shows. */
export type AskForPage = (ask: PageAsk, signal: AbortSignal) => Promise<PageAnswer>;

const edgeOf = (isEnd: boolean): EdgeState => ({ kind: isEnd ? 'end' : 'more' });

/**
 * A window over all records that a question matches. It moves by cursors, which name places: a page begins behind the last record of the
 * one before, so that none is left out or shown twice, however many have the same time. Whatever is shown, the window holds no more
 * than its bounds.
 */
export class RecordWindow {
  private readonly current = signal<WindowState>(emptyWindow);
  private ask: AskForPage | undefined;
  private opening = new AbortController();
  /** The greatest cursor that is known to exist. A page that ends before it is not the end. */
  private knownNewest = firstCursor;

  get state(): ReadonlySignal<WindowState> {
    return this.current;
  }

  /** Asks another question from now on. What is shown stays until one of the `open` methods has its answer. */
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

  /** Shows the first records behind a cursor. */
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

  /** Shows a record in the middle of its neighbours on both sides. */
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

  /** Adds a page at an end, and lets go of what is far from it. Nothing happens where there is no more, or one is under way. */
  async extend(edge: Edge): Promise<void> {
    const before = this.current.value;
    const next = recordAt(before, edge);
    const { ask } = this;
    const isOpen =
      before.status === 'ready' && (before[edge].kind === 'more' || before[edge].kind === 'failed');
    if (!isOpen || next === undefined || ask === undefined) return;
    const { signal: aborts } = this.opening;
    this.set({ [edge]: { kind: 'loading' } });
    try {
      const side = edge === 'older' ? { before: next.cursor } : { after: next.cursor };
      const { records, isEnd, timing } = await ask({ limit: pageRecords, ...side }, aborts);
      if (aborts.aborted) return;
      this.add(edge, records, isEnd, timing);
    } catch (error) {
      if (aborts.aborted || isAborted(error)) return;
      this.set({ [edge]: { kind: 'failed', failure: failureOfError(error) } });
    }
  }

  /**
   * Takes records that a stream brought. They are shown where the window reaches the newest ones and `isShown`; else it is noted that there
   * are more. Gives how many were added.
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

  /** Lets go of requests that are under way. */
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

  /** A page may have been read just before a record was stored that the stream has told of since. */
  private isNewestKnown(edge: Edge, isEnd: boolean): boolean {
    const last = recordAt(this.current.value, 'newer')?.cursor ?? firstCursor;
    return isEnd && (edge === 'older' || last >= this.knownNewest);
  }

  private async open(
    read: (ask: AskForPage, signal: AbortSignal) => Promise<Partial<WindowState>>,
  ): Promise<void> {
    this.opening.abort();
    this.opening = new AbortController();
    const { signal: aborts } = this.opening;
    const { ask } = this;
    if (ask === undefined) return;
    this.set({ status: 'loading', failure: undefined });
    try {
      const opened = await read(ask, aborts);
      if (aborts.aborted) return;
      this.set({ ...opened, status: 'ready' });
      const { newer } = this.current.value;
      if (newer.kind === 'end') this.set({ newer: edgeOf(this.isNewestKnown('newer', true)) });
    } catch (error) {
      if (aborts.aborted || isAborted(error)) return;
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
