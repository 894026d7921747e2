import { setImmediate as nextTurn } from 'node:timers/promises';
import { type RecordEvents, type LogEntry, eventText, type EventStream } from './event-stream.js';
import { type Semaphore, assert, type Query, type Seen, answerBytesMax } from '../../engine/index.js';
import { clientGoneError } from '../http/transport.js';
import { type ProblemError, problemOf } from '../http/problem.js';
import type { BacklogState, BacklogPlace, Followed } from './backlogs.js';
import { followedFrom, type FollowedPosition } from './followed-position.js';
import type { FollowGroup, GroupMember } from './follow-group.js';

const ignore = (): void => undefined;

/** Has a scan that waits for its turn give back the permit: it does no work, so another follower may have it. */
function onWait(givePermit: () => void): (waits: boolean) => void {
  return (waits) => {
    if (waits) givePermit();
  };
}

/** What a follower is given by `Followers`. */
export interface FollowerWork {
  readonly group: FollowGroup;
  readonly followed: Followed;
  readonly stream: EventStream;
  /** Bound how many followers look for the first records of a scan at once. */
  readonly permits: Semaphore;
  readonly timeoutMs: number;
  /** Why the client may not follow any longer at `nowMs` (ms since the epoch); null while it may. */
  readonly objection: (nowMs: number) => ProblemError | null;
  readonly onBegin: () => void;
  /** Called once when the follower ends, for whatever reason. */
  readonly onOver: () => void;
  readonly onFailure: (error: unknown) => void;
}

/**
 * One client that follows. First it catches up: by a scan that it shares with clients that begin at the same time, or by scans of its own.
 * Then it joins its group and takes records from the group's log. Because it takes log entries from before its last scan on, some of them
 * contain records that the scan has covered too. The state that the scan read (`#seen`) tells which ones.
 */
export class Follower implements GroupMember {
  readonly group: FollowGroup;
  readonly stream: EventStream;
  readonly followed: Followed;
  next = 0;
  readonly #work: FollowerWork;
  readonly #position: FollowedPosition;
  /** The state that the last scan read; null before joining, and once the log can't contain records of that state any more. */
  #seen: Seen | null = null;
  /** From this reading on the log contains no records of `#seen`. */
  #firstNewReading = 0;
  /** Whether it has caught up and takes records from the log. */
  #isJoined = false;
  #isOver = false;
  #place: BacklogPlace | undefined;

  /** @param after the position that the client continues from; undefined if it gave none */
  constructor(work: FollowerWork, after: Query['after']) {
    this.#work = work;
    this.group = work.group;
    this.stream = work.stream;
    this.followed = work.followed;
    this.#position = followedFrom(work.followed.store.cursors, after);
    this.stream.onFree = () => this.take();
    this.group.join(this);
  }

  /** Answers `query`, then follows. Rejects if the group can't begin, before anything is sent; later failures end the stream. */
  async begin(query: Query): Promise<void> {
    try {
      await this.group.ready;
    } catch (error) {
      this.leave();
      throw error;
    }
    if (this.#isOver) return;
    this.stream.begin();
    this.#work.onBegin();
    try {
      await this.#catchUp(query);
    } catch (error) {
      this.fail(error);
    }
  }

  async #catchUp(query: Query): Promise<void> {
    let seen = await this.#begun(query);
    // A client that gave no cursor and was sent nothing starts after the last record of the state that was read.
    if (query.after === undefined && this.#position.isFirst) this.#position.begin(seen.last);
    while (this.next < this.group.log.first && !this.#isOver) seen = await this.#added(seen);
    if (this.#isOver) return;
    this.#seen = seen;
    this.#isJoined = true;
    this.take();
  }

  /** Sends the records that the stream begins with, read together with clients that begin nearby. Returns the state that was read. */
  async #begun(query: Query): Promise<Seen> {
    const { backlogs } = this.group;
    const place = backlogs.wait(query);
    this.#place = place;
    const givePermit = await this.#work.permits.acquire();
    let seen: Seen | null;
    let isUntouched = true;
    try {
      if (this.#isOver) throw clientGoneError();
      if (await backlogs.enter(place, onWait(givePermit))) {
        // Many clients may come for this backlog: other work gets a turn of the event loop between two of them.
        await nextTurn();
        givePermit();
      }
      seen = await this.#send(place, givePermit, (events) => {
        isUntouched = false;
        return this.#position.takeFirst(events);
      });
    } finally {
      givePermit();
      backlogs.leave(place);
    }
    if (seen === null && isUntouched) return this.#begun(query);
    return seen ?? this.#rest(place.backlog!.state!);
  }

  /** Sends the rest of a state, for a client that was too slow for those with which it shared a backlog. */
  async #rest(state: BacklogState): Promise<Seen> {
    const { after } = this.#position;
    return this.#alone(
      (onTurn) => this.group.backlogs.beginRest(after, state, onTurn),
      (events) => this.#position.takeFirst(events),
    );
  }

  /** Sends the records that have become visible since the state `before`. Returns the state that was read. */
  async #added(before: Seen): Promise<Seen> {
    return this.#alone(
      (onTurn) => this.group.backlogs.beginAdded(before, onTurn),
      (events) => this.#position.take(events, null),
    );
  }

  /** Sends a backlog that has no other reader. */
  async #alone(
    begin: (onTurn: (waits: boolean) => void) => BacklogPlace,
    take: (events: RecordEvents) => Buffer | null,
  ): Promise<Seen> {
    const givePermit = await this.#work.permits.acquire();
    try {
      if (this.#isOver) throw clientGoneError();
      this.#place = begin(onWait(givePermit));
      const seen = await this.#send(this.#place, givePermit, take);
      assert(seen !== null, 'a single reader misses nothing');
      return seen;
    } finally {
      givePermit();
      this.group.backlogs.leave(this.#place!);
    }
  }

  /**
   * Sends the events that a place takes from its backlog. Returns the state that they are from; null if the client was too slow and has
   * missed some of them. Most scans do all their work for the first events, so the permit covers just that. From there on the turns of long
   * answers bound the memory. No permit is taken again: a scan that waits for one would keep its turn.
   */
  async #send(
    place: BacklogPlace,
    givePermit: () => void,
    take: (events: RecordEvents) => Buffer | null,
  ): Promise<Seen | null> {
    for (;;) {
      const events = await place.take();
      givePermit();
      if (this.#isOver) throw clientGoneError();
      if (events === null) return null;
      this.next = place.backlog!.state!.next;
      if (events === undefined) break;
      const bytes = take(events);
      if (bytes !== null) await this.stream.write(bytes);
    }
    const { seen, firstNewReading } = place.backlog!.state!;
    this.#firstNewReading = firstNewReading;
    const behind = this.#position.takeEarlier();
    if (behind !== null) await this.stream.write(eventText('behind', behind));
    return seen;
  }

  take(): void {
    if (!this.#isJoined || this.#isOver) return;
    const { log } = this.group;
    while (this.next < log.end && !this.stream.isWriting) {
      const pieces: Buffer[] = [];
      for (let bytes = 0; this.next < log.end && bytes < answerBytesMax;) {
        const piece = this.#takeEntry(log.at(this.next++));
        if (piece === null) continue;
        pieces.push(piece);
        bytes += piece.length;
      }
      if (pieces.length === 0) continue;
      // A write that fails means that the client has gone, which `whenGone` reports.
      this.stream.write(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)).catch(ignore);
    }
  }

  /** The bytes that an entry of the log gives for this client; null for none. */
  #takeEntry({ reading, events }: LogEntry): Buffer | null {
    if (reading >= this.#firstNewReading) this.#seen = null;
    if (events === null) {
      const behind = this.#position.takeEarlier();
      return behind === null ? null : eventText('behind', behind);
    }
    const seen = this.#seen;
    const isKnown = seen === null ? null : (cursor: string) => seen.has(this.#position.parse(cursor));
    return this.#position.take(events, isKnown);
  }

  miss(): void {
    // While it catches up, another scan fills the gap.
    if (!this.#isJoined) return;
    const { last } = this.#position;
    const detail = `this client reads its events too slowly: more events than the server buffers have arrived since ${last}`;
    this.#end(eventText('lagging', { detail }));
  }

  end(): void {
    this.#end(null);
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#work.onFailure(error);
    this.#endWith(problemOf(error));
  }

  /** Returns whether the client may not follow any longer at `nowMs` (ms since the epoch). If so, ends the stream and says why. */
  isRefused(nowMs: number): boolean {
    const objection = this.#work.objection(nowMs);
    if (objection === null) return false;
    this.#endWith(objection);
    return true;
  }

  #endWith({ status, title, detail }: ProblemError): void {
    this.#end(eventText('failed', { status, title, detail }));
  }

  #end(farewell: Buffer | null): void {
    this.stream.end(farewell);
    this.leave();
  }

  /** Frees what the follower holds, once the client has gone or its stream has ended. Further calls do nothing. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#seen = null;
    if (this.#place !== undefined) this.group.backlogs.leave(this.#place);
    this.group.leave(this);
    this.#work.onOver();
  }
}
