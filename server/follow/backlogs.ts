import { comparePositions, type Position, type Query, type SeenState } from '../../engine/index.js';
import { followNearRecords } from '../http/http-limits.js';
import { Backlog, type BacklogReader, type BacklogScan, type BacklogState } from './backlog.js';
import type { LogRoom } from './event-log.js';
import { allAfter, beforeAll, type Followed } from './followed.js';
import type { RecordEvents } from './record-events.js';

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
  compared: { readonly runs: SeenState['runs']; readonly continues: boolean } | null;
}

/**
 * What the clients of a group catch up on. Clients that begin at the same place, or near to each other, at about the same time get one
 * backlog. It is read from the lowest place of those that wait when it is begun, and each client leaves out what is before its own place.
 */
export class Backlogs {
  readonly #group: BacklogGroup;
  readonly #waiting = new Set<BacklogPlace>();
  /** All that are being read or kept; null for those which one client has for itself. */
  readonly #backlogs = new Map<Backlog, OpenBacklog | null>();
  #arrivals = 0;

  constructor(group: BacklogGroup) {
    this.#group = group;
  }

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
    if (state === undefined || comparePositions(place.query.after!, state.seen.last) > 0) return false;
    const now = await this.#group.followed.store.seen();
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
  beginAdded(before: SeenState, onTurn: (waits: boolean) => void): BacklogPlace {
    const query = allAfter(this.#group.followed, beforeAll);
    return this.#single(query, this.#newest(query, before), onTurn);
  }

  /** Begins a backlog for one client: the records of a state after a position. */
  beginRest(after: Position, state: BacklogState, onTurn: (waits: boolean) => void): BacklogPlace {
    const { followed } = this.#group;
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
  #newest(query: Query, before: SeenState | null): BacklogScan {
    const { followed, logEnd, firstNewReading } = this.#group;
    return async (options) => {
      // Log entries are taken from here on: what the group reads during the scan must not be missed.
      const next = logEnd();
      const { scan, state: seen } = await followed.store.scanAdded(query, before, options);
      return { scan, state: { seen, next, firstNewReading: firstNewReading() } };
    };
  }

  #make(begin: BacklogScan, open: OpenBacklog | null, onTurn: (waits: boolean) => void): Backlog {
    const { timeoutMs, room, onUnneeded: onClosed } = this.#group;
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
  return (
    a !== undefined && a.partition === b?.partition && Math.abs(a.ordinal - b.ordinal) < followNearRecords
  );
}
