import { LogstrataError, type Scan, type ScanOptions, type SeenState } from '../../engine/index.js';
import { followKeptBytesMax, followBacklogOpenMs, followBacklogPatienceMs } from '../http/http-limits.js';
import { TimedPieces } from '../pace/timed-pieces.js';
import { EventLog, type LogRoom } from './event-log.js';
import { eventsOf, type RecordEvents } from './record-events.js';

/** A state that a scan reads, and where the log of the group continues after it. */
export interface BacklogState {
  readonly seen: SeenState;
  /** Index of the log entry to continue with. Entries of early readings may repeat records of `seen`. */
  readonly next: number;
  /** From this reading on the log contains no records of `seen`. */
  readonly firstNewReading: number;
}

/** Begins the scan of a backlog, and says which state it reads. */
export type BacklogScan = (
  options: ScanOptions,
) => Promise<{ readonly scan: Scan; readonly state: BacklogState }>;

/** How a backlog is read. */
export interface BacklogWork {
  readonly begin: BacklogScan;
  readonly timeoutMs: number;
  readonly room: LogRoom;
  /** Whether other readers may join. If so, a slow one may miss events. */
  readonly isShared: boolean;
  /** Called with true when the scan begins to wait for other long answers, and with false when that wait is over. */
  readonly onTurn: (waits: boolean) => void;
  /** Called once no further readers may join; only for a shared one. */
  readonly onClosed: () => void;
  /** Called once it has no readers and may get none any more. */
  readonly onOver: () => void;
}

/** One client that takes the events of a backlog. */
export interface BacklogReader {
  /** Index of the first entry that it has not taken. */
  next: number;
}

/**
 * Records that clients catch up on: those of one state after one position. One scan reads them for all readers, whenever the first of them
 * needs more. At first all events are kept, for readers that come later. After `followBacklogOpenMs`, or beyond `followKeptBytesMax`, only
 * those are kept that some reader has not taken yet. If these too are as many, the scan waits for the slow readers, but not for long: after
 * that, they miss events, and each of them has to read the rest of the state by itself.
 */
export class Backlog {
  readonly #work: BacklogWork;
  readonly #log: EventLog;
  readonly #pieces: TimedPieces;
  readonly #readers = new Set<BacklogReader>();
  /** The reading of the next events, while one is under way or after one has failed. */
  #reading: Promise<void> | undefined;
  #state: BacklogState | undefined;
  #isAtEnd = false;
  #isOver = false;
  /** Whether all events are kept, so that further readers may join. */
  #isOpen: boolean;
  /** How much longer the scan waits for slow readers, in all. */
  #patienceMs = followBacklogPatienceMs;
  /** Resolves the wait of the scan for slow readers. */
  #onRoom: (() => void) | undefined;

  constructor(work: BacklogWork) {
    this.#work = work;
    // A single reader has taken all events before the next ones are read, so there is nothing to bound.
    this.#log = new EventLog(work.isShared ? work.room.budget : { bytes: 0 });
    this.#pieces = new TimedPieces(work.timeoutMs);
    this.#isOpen = work.isShared;
    if (this.#isOpen) setTimeout(() => this.#closeEntry(), followBacklogOpenMs).unref();
  }

  /** Whether further readers may join. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The state that is read; undefined until the scan has begun. */
  get state(): BacklogState | undefined {
    return this.#state;
  }

  /** Bytes of events that are kept for readers which have not taken them, and that `shrink` can free. */
  get spareBytes(): number {
    return this.#work.isShared ? this.#log.bytes : 0;
  }

  join(reader: BacklogReader): void {
    this.#readers.add(reader);
  }

  /** Whether the reader can go on: the next events for it have not been dropped. */
  hasNext(reader: BacklogReader): boolean {
    return this.#readers.has(reader) && reader.next >= this.#log.first;
  }

  /** The next events for a reader; undefined at the end, and null if it has missed some. Rejects as the scan does. */
  async take(reader: BacklogReader): Promise<RecordEvents | undefined | null> {
    while (this.hasNext(reader)) {
      if (reader.next < this.#log.end) {
        const { events } = this.#log.at(reader.next++);
        if (!this.#isOpen) this.#dropTaken();
        return events;
      }
      if (this.#isAtEnd) return undefined;
      await (this.#reading ??= this.#read());
    }
    return null;
  }

  /** A reader that has left, for whatever reason, takes nothing any more. The last one ends the scan. */
  leave(reader: BacklogReader): void {
    if (!this.#readers.delete(reader)) return;
    // A scan that has not ended would hold resources for readers that may never come.
    if (this.#readers.size === 0 && !this.#isAtEnd) this.#closeEntry();
    else this.#tidy();
  }

  #closeEntry(): void {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#work.onClosed();
    }
    this.#tidy();
  }

  /** Frees what nobody needs any more. */
  #tidy(): void {
    if (this.#isOpen) return;
    this.#dropTaken();
    if (this.#readers.size > 0 || this.#isOver) return;
    this.#isOver = true;
    this.#pieces.interrupt(new LogstrataError('cancelled', 'nobody catches up any more'));
    void this.#pieces.close();
    this.#work.onOver();
  }

  /** Drops the oldest events until at most `bytes` are kept. Readers that have not taken them miss them. */
  shrink(bytes: number): void {
    this.#closeEntry();
    this.#log.shrink(bytes);
    for (const reader of [...this.#readers]) if (!this.hasNext(reader)) this.leave(reader);
  }

  async #read(): Promise<void> {
    try {
      if (this.#state === undefined) await this.#begin();
      await this.#waitForRoom();
      const piece = await this.#pieces.next();
      if (piece === undefined) this.#isAtEnd = true;
      else if (!this.#isOver) this.#log.add({ reading: 0, events: eventsOf(piece) });
    } catch (error) {
      this.#closeEntry();
      throw error;
    }
    this.#reading = undefined;
    this.#work.room.check();
  }

  async #begin(): Promise<void> {
    const { begin, onTurn } = this.#work;
    await this.#pieces.start(async (signal) => {
      const { scan, state } = await begin({ signal, lends: true, onTurn });
      this.#state = state;
      return scan;
    });
  }

  /** Waits until slow readers have taken so much that less than the bound is kept, or drops events that they have not taken. */
  async #waitForRoom(): Promise<void> {
    if (this.#log.bytes < followKeptBytesMax) return;
    this.#closeEntry();
    if (this.#log.bytes < followKeptBytesMax) return;
    const startMs = performance.now();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#patienceMs);
      this.#onRoom = (): void => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onRoom = undefined;
    this.#patienceMs = Math.max(0, this.#patienceMs - (performance.now() - startMs));
    if (this.#log.bytes >= followKeptBytesMax) this.shrink(followKeptBytesMax / 2);
  }

  #dropTaken(): void {
    let end = this.#log.end;
    for (const { next } of this.#readers) end = Math.min(end, next);
    this.#log.dropBefore(end);
    if (this.#log.bytes < followKeptBytesMax) this.#onRoom?.();
  }
}
