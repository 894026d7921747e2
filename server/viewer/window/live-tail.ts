import { signal, type ReadonlySignal } from '@preact/signals';
import type { Failure } from '../api/failure.js';
import { Follower, type BehindNotice } from '../api/follower.js';
import type { ServerDoor } from '../api/server-door.js';
import type { Question } from '../query/question.js';
import { firstCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import type { RecordWindow } from './record-window.js';
import { recordAt } from './window-state.js';

/** What a tail is doing. */
export interface TailState {
  readonly kind: 'off' | 'connecting' | 'open' | 'failed';
  /** Records that came and are not shown, since one has scrolled away from them. */
  readonly held: number;
  /** There are more of them than are counted. */
  readonly isMore: boolean;
  readonly failure?: Failure | undefined;
  /** Records that came before those that are shown. */
  readonly behind?: BehindNotice | undefined;
}

const off: TailState = { kind: 'off', held: 0, isMore: false };

/** Records are put into the table so often; a person sees no difference, and a fast log does not fill the page with work. */
const flushMs = 100;
/** Records that wait to be put there, and cursors that are counted; the rest is read again by its cursor. */
const waitingMax = 2000;
const heldMax = 100_000;

/**
 * Follows the newest records into a window. While one has scrolled away from them it counts what comes and lets it go: the window reads it
 * by its cursor when one comes back. So memory is bounded, and nothing is lost.
 */
export class LiveTail {
  private readonly current = signal<TailState>(off);
  private follower: Follower | undefined;
  private waiting: LogRecord[] = [];
  /** Cursors of what came since one has scrolled away, in order. */
  private held: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The table shows its newest end. */
  private isAtEnd = true;
  /** The newest record in sight. */
  private seen: string | undefined;

  constructor(
    private readonly door: ServerDoor,
    private readonly window: RecordWindow,
    /** Is told that records have come. */
    private readonly arrived: () => void,
  ) {}

  get state(): ReadonlySignal<TailState> {
    return this.current;
  }

  /** Follows what a question matches from the newest record of the window on. */
  start(question: Question): void {
    this.stop();
    const after = recordAt(this.window.state.peek(), 'newer')?.cursor ?? firstCursor;
    this.current.value = { ...off, kind: 'connecting' };
    this.follower = new Follower(this.door, question, after, {
      records: (records) => this.take(records),
      behind: (behind) => this.set({ behind }),
      opened: () => this.set({ kind: 'open', failure: undefined }),
      failed: (failure) => this.set({ kind: 'failed', failure }),
    });
    void this.follower.run();
  }

  stop(): void {
    this.follower?.stop();
    this.follower = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting = [];
    this.held = [];
    this.current.value = off;
  }

  /** Says what the newest record in sight is, and whether the table shows its newest end. Away from it nothing is added under one's eyes. */
  setSeen(seen: string | undefined, isAtEnd: boolean): void {
    this.seen = seen;
    this.isAtEnd = isAtEnd;
    this.count();
  }

  /** Forgets the records that came before those shown: somebody has seen the notice. */
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
    const added = this.window.take(records, this.isAtEnd && this.held.length === 0);
    if (added === 0) for (const { cursor } of records) if (this.held.length < heldMax) this.held.push(cursor);
    this.count();
    this.arrived();
  }

  /** Counts what nobody has seen: less and less as one scrolls towards it. */
  private count(): void {
    if (this.follower === undefined) return;
    const newest = recordAt(this.window.state.peek(), 'newer')?.cursor ?? firstCursor;
    const last = this.isAtEnd ? newest : (this.seen ?? newest);
    const isMore = this.held.length >= heldMax;
    const first = this.held.findIndex((cursor) => cursor > last);
    this.held = first < 0 ? [] : this.held.slice(first);
    if (this.current.value.held !== this.held.length) this.set({ held: this.held.length, isMore });
  }

  private set(change: Partial<TailState>): void {
    this.current.value = { ...this.current.value, ...change };
  }
}
