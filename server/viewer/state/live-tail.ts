import { signal, type ReadonlySignal } from '@preact/signals';
import type { Failure } from './failure.js';
import { Follower, type BehindNotice } from './record-stream.js';
import type { ServerClient } from './requests.js';
import type { Question } from './view.js';
import { firstCursor, isBehind, type LogRecord } from './record.js';
import { type RecordWindow, recordAt } from './record-window.js';

/** The state of the live tail. */
export interface TailState {
  readonly kind: 'off' | 'connecting' | 'open' | 'failed';
  /** Number of new records that are not shown, as the user has scrolled away from the newest ones. */
  readonly unseenCount: number;
  /** Whether there are more than were counted. */
  readonly isMore: boolean;
  readonly failure?: Failure | undefined;
  /** A notice of records that were inserted before the shown ones; undefined where there were none. */
  readonly behind?: BehindNotice | undefined;
}

const off: TailState = { kind: 'off', unseenCount: 0, isMore: false };

/** Milliseconds between two updates of the table: not noticeable, and a fast log does not overload the page. */
const flushMs = 100;
/**
 * Maximum number of records that wait for the next update, and of cursors that are counted. Further records are not kept, but requested
 * again by their cursors.
 */
const waitingMax = 2000;
const unseenMax = 100_000;

/**
 * Follows the newest records into a window. While the user has scrolled away from them, it only counts new records and drops them; the
 * window requests them again by cursor when the user scrolls back. So memory is bounded, and no record is lost.
 */
export class LiveTail {
  private readonly current = signal<TailState>(off);
  private follower: Follower | undefined;
  private waiting: LogRecord[] = [];
  /** Cursors of the records that came since the user scrolled away, in order. */
  private unseenCursors: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the table is scrolled to the newest records. */
  private isAtEnd = true;
  /** Cursor of the newest visible record. */
  private seen: string | undefined;

  constructor(
    private readonly server: ServerClient,
    private readonly window: RecordWindow,
    /** Called after records have come. */
    private readonly arrived: () => void,
  ) {}

  get state(): ReadonlySignal<TailState> {
    return this.current;
  }

  /** Follows the records that match a question, from the newest record of the window on. */
  start(question: Question): void {
    this.stop();
    const after = recordAt(this.window.state.peek(), 'newer')?.cursor ?? firstCursor;
    this.current.value = { ...off, kind: 'connecting' };
    this.follower = new Follower(this.server, question, after, {
      records: (records) => this.take(records),
      behind: (behind) => this.set({ behind }),
      opened: () => this.set({ kind: 'open', failure: undefined }),
      failed: (failure) => this.set({ kind: 'failed', failure }),
    });
    void this.follower.run();
  }

  /** Stops following, and drops records that are not shown yet. */
  stop(): void {
    this.follower?.stop();
    this.follower = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting = [];
    this.unseenCursors = [];
    this.current.value = off;
  }

  /**
   * Sets the newest visible record, and whether the table is scrolled to the newest records. Elsewhere no records are added while the user
   * reads.
   */
  setSeen(seen: string | undefined, isAtEnd: boolean): void {
    this.seen = seen;
    this.isAtEnd = isAtEnd;
    this.count();
  }

  /** Removes the notice about records before the shown ones, once the user has seen it. */
  clearBehind(): void {
    this.set({ behind: undefined });
  }

  private take(records: readonly LogRecord[]): void {
    for (const record of records) this.waiting.push(record);
    if (this.waiting.length > waitingMax) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), flushMs);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const records = this.waiting;
    this.waiting = [];
    const added = this.window.take(records, this.isAtEnd && this.unseenCursors.length === 0);
    if (added === 0)
      for (const { cursor } of records)
        if (this.unseenCursors.length < unseenMax) this.unseenCursors.push(cursor);
    this.count();
    this.arrived();
  }

  /** Updates the number of records that the user has not seen. It falls as the user scrolls towards them. */
  private count(): void {
    if (this.follower === undefined) return;
    const newest = recordAt(this.window.state.peek(), 'newer')?.cursor ?? firstCursor;
    const last = this.isAtEnd ? newest : (this.seen ?? newest);
    const isMore = this.unseenCursors.length >= unseenMax;
    const first = this.unseenCursors.findIndex((cursor) => isBehind(cursor, last));
    this.unseenCursors = first < 0 ? [] : this.unseenCursors.slice(first);
    if (this.current.value.unseenCount !== this.unseenCursors.length)
      this.set({ unseenCount: this.unseenCursors.length, isMore });
  }

  private set(change: Partial<TailState>): void {
    this.current.value = { ...this.current.value, ...change };
  }
}
