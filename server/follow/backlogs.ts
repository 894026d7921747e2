import {
  jointOf,
  LogstrataError,
  type Scan,
  type ScanOptions,
  type Seen,
  type Query,
  type RecordStore,
  type Position,
} from '../../engine/index.js';
import {
  followKeptBytesMax,
  followBacklogOpenMs,
  followBacklogPatienceMs,
  followNearRecords,
} from '../http/http-limits.js';
import { isBeyond, isSamePlace } from './followed-position.js';
import { TimedPieces } from '../pace/timed-pieces.js';
import { EventLog, type LogRoom, eventsOf, type RecordEvents } from './event-stream.js';

/** A state that a scan reads, and where the log of the group continues after it. */
export interface BacklogState {
  readonly seen: Seen;
  /** Index of the log entry to continue with. Entries of early readings may repeat records of `seen`. */
  readonly next: number;
  /** From this reading on the log contains no records of `seen`. */
  readonly firstNewReading: number;
}

/** Begins the scan of a backlog, and says which state it reads. */
type BacklogScan = (options: ScanOptions) => Promise<{ readonly scan: Scan; readonly state: BacklogState }>;

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
interface BacklogReader {
  /** Index of the first entry that it has not taken. */
  next: number;
}

/**
 * Records that clients catch up on: those of one state after one position. One scan reads them for all readers, whenever the first of them
 * needs more. At first all events are kept, for readers that come later. After `followBacklogOpenMs`, or beyond `followKeptBytesMax`, only
 * those are kept that some reader has not taken yet. If these too are as many, the scan waits for the slow readers, but not for long: after
 * that, they miss events, and each of them has to read the rest of the state by itself.
 */
class Backlog {
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

  constructor(private readonly work: BacklogWork) {
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
    return this.work.isShared ? this.#log.bytes : 0;
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
      this.work.onClosed();
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
    this.work.onOver();
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
    this.work.room.check();
  }

  async #begin(): Promise<void> {
    const { begin, onTurn } = this.work;
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

/** The records that a group follows: an agent, filters, and the fields to write. */
export interface Followed {
  readonly agent: string;
  readonly store: RecordStore;
  /** A query with the filters and the fields to write. */
  readonly query: Query;
}

/** The query for all matching records after a position, without a limit. */
export function allAfter({ query }: Pick<Followed, 'query'>, after: Query['after']): Query {
  return { ...query, limit: Number.MAX_SAFE_INTEGER, after };
}

/** The position before all records. */
export const beforeAll = { partition: 0, ordinal: 0 };

/** What the backlogs of a group need from it. */
export interface BacklogGroup {
  readonly followed: Followed;
  readonly timeoutMs: number;
  readonly room: LogRoom;
  /** Index that the next entry of the group's log gets. */
  readonly logEnd: () => number;
  /** The reading from which on the log contains no records of the state that is the newest now. */
  readonly firstNewReading: () => number;
  /** Called when `Backlogs.firstNeeded` may have become higher. */
  readonly onUnneeded: () => void;
}

/** The place of a client that waits for its backlog, or takes it. */
export class BacklogPlace implements BacklogReader {
  next = 0;
  /** The backlog that it takes; undefined while it waits for one. */
  backlog: Backlog | undefined;

  /** @param arrival number of the clients of its group that had come before */
  constructor(
    readonly query: Query,
    readonly arrival: number,
  ) {}

  join(backlog: Backlog): void {
    this.backlog = backlog;
    backlog.join(this);
  }

  /** The next events; undefined at the end, and null if some were dropped before it took them. Rejects as the scan does. */
  take(): Promise<RecordEvents | undefined | null> {
    return this.backlog!.take(this);
  }
}

/** A backlog that other clients may join. */
interface OpenBacklog {
  readonly query: Query;
  /** Number of clients that had come when it was begun. */
  readonly arrivals: number;
  /** The latest state that its own was compared with, and whether that state only continues its own. Comparing takes time by each run. */
  compared: { readonly runs: Seen['runs']; readonly continues: boolean } | null;
}

/**
 * What the clients of a group catch up on. Clients that begin at the same place, or near to each other, at about the same time get one
 * backlog. It is read from the lowest place of those that wait when it is begun, and each client leaves out what is before its own place.
 */
export class Backlogs {
  readonly #waiting = new Set<BacklogPlace>();
  /** All that are being read or kept; null for those which one client has for itself. */
  readonly #backlogs = new Map<Backlog, OpenBacklog | null>();
  #arrivals = 0;

  constructor(private readonly group: BacklogGroup) {}

  /** The backlogs that are being read, or kept for clients that may come. */
  get all(): Iterable<Backlog> {
    return this.#backlogs.keys();
  }

  /** Index of the first entry of the group's log that clients may need which have not come yet; Infinity if there is none. */
  get firstNeeded(): number {
    let first = Infinity;
    for (const { isOpen, state } of this.#backlogs.keys())
      if (isOpen && state !== undefined) first = Math.min(first, state.next);
    return first;
  }

  /** Notes that a client waits for the records of `query`. `leave` must follow. */
  wait(query: Query): BacklogPlace {
    const place = new BacklogPlace(query, this.#arrivals++);
    this.#waiting.add(place);
    return place;
  }

  /** Gives a client that waits a backlog: one that is open for it, or else a new one. Returns whether others had begun it. */
  async enter(place: BacklogPlace, onTurn: (waits: boolean) => void): Promise<boolean> {
    const refused = new Set<Backlog>();
    for (;;) {
      const found = this.#openFor(place, refused);
      if (found === undefined) {
        this.#begin(place, onTurn);
        return false;
      }
      const [backlog, open] = found;
      const isFresh = place.arrival < open.arrivals || (await this.#isFresh(backlog, open, place));
      if (isFresh && backlog.isOpen) {
        this.#waiting.delete(place);
        place.join(backlog);
        return true;
      }
      refused.add(backlog);
    }
  }

  #openFor(place: BacklogPlace, refused: ReadonlySet<Backlog>): readonly [Backlog, OpenBacklog] | undefined {
    for (const [backlog, open] of this.#backlogs) {
      const mayJoin = open !== null && backlog.isOpen && !refused.has(backlog) && isOpenFor(open, place);
      if (mayJoin) return [backlog, open];
    }
    return undefined;
  }

  /**
   * Whether a client that came after a backlog had been begun gets the same from it, and from the log behind it, as from a scan of its own.
   * That holds if all records which have become visible since are after the records of the backlog and after the place of the client.
   */
  async #isFresh({ state }: Backlog, open: OpenBacklog, place: BacklogPlace): Promise<boolean> {
    if (state === undefined || isBeyond(place.query.after!, state.seen.last)) return false;
    const now = await this.group.followed.store.seen();
    if (open.compared?.runs !== now.runs)
      open.compared = { runs: now.runs, continues: state.seen.isContinuedBy(now) };
    return open.compared.continues;
  }

  #begin(place: BacklogPlace, onTurn: (waits: boolean) => void): void {
    let { query } = place;
    for (const other of this.#waiting)
      if (isNear(query, other.query) && other.query.after!.ordinal < query.after!.ordinal)
        query = other.query;
    this.#waiting.delete(place);
    place.join(
      this.#make(this.#newest(query, null), { query, arrivals: this.#arrivals, compared: null }, onTurn),
    );
  }

  /** Begins a backlog for one client: the records that have become visible since `before`. */
  beginAdded(before: Seen, onTurn: (waits: boolean) => void): BacklogPlace {
    const query = allAfter(this.group.followed, beforeAll);
    return this.#single(query, this.#newest(query, before), onTurn);
  }

  /** Begins a backlog for one client: the records of a state after a position. */
  beginRest(after: Position, state: BacklogState, onTurn: (waits: boolean) => void): BacklogPlace {
    const { followed } = this.group;
    const query = allAfter(followed, after);
    const begin: BacklogScan = async (options) => ({
      scan: await followed.store.scanSeen(query, state.seen, options),
      state,
    });
    return this.#single(query, begin, onTurn);
  }

  leave(place: BacklogPlace): void {
    this.#waiting.delete(place);
    place.backlog?.leave(place);
  }

  #single(query: Query, begin: BacklogScan, onTurn: (waits: boolean) => void): BacklogPlace {
    const place = new BacklogPlace(query, 0);
    place.join(this.#make(begin, null, onTurn));
    return place;
  }

  /** The scan of the newest state, or of what it has besides the records of an earlier one. */
  #newest(query: Query, before: Seen | null): BacklogScan {
    const { followed, logEnd, firstNewReading } = this.group;
    return async (options) => {
      // Log entries are taken from here on: what the group reads during the scan must not be missed.
      const next = logEnd();
      const { scan, state: seen } = await followed.store.scanAdded(query, before, options);
      return { scan, state: { seen, next, firstNewReading: firstNewReading() } };
    };
  }

  #make(begin: BacklogScan, open: OpenBacklog | null, onTurn: (waits: boolean) => void): Backlog {
    const { timeoutMs, room, onUnneeded: onClosed } = this.group;
    const onOver = (): void => void this.#backlogs.delete(backlog);
    const backlog = new Backlog({
      begin,
      timeoutMs,
      room,
      isShared: open !== null,
      onTurn,
      onClosed,
      onOver,
    });
    this.#backlogs.set(backlog, open);
    return backlog;
  }
}

/** Whether a client may join a backlog. Both have the same filters and fields. */
function isOpenFor({ query, arrivals }: OpenBacklog, place: BacklogPlace): boolean {
  const { after, limit } = place.query;
  // The newest records are those of the moment in which a client asks.
  if (after === undefined)
    return query.after === undefined && limit === query.limit && place.arrival < arrivals;
  return isNear(query, place.query) && after.ordinal >= query.after!.ordinal;
}

/** Whether two queries ask for what comes after places that are near to each other. */
function isNear({ after: a }: Query, { after: b }: Query): boolean {
  if (jointOf(a) !== undefined || jointOf(b) !== undefined) return isSamePlace(a, b);
  return (
    a !== undefined && a.partition === b?.partition && Math.abs(a.ordinal - b.ordinal) < followNearRecords
  );
}
