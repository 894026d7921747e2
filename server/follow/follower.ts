import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  formatCursor,
  LogstrataError,
  parseCursor,
  type Query,
  type Scan,
  type SeenState,
} from '../../engine/index.js';
import { clientGoneError } from '../http/client-gone.js';
import { followWriteBytesMax } from '../http/http-limits.js';
import { type ProblemError, problemOf } from '../http/problem.js';
import type { Permits } from '../pace/permits.js';
import { TimedPieces } from '../pace/timed-pieces.js';
import type { LogEntry } from './event-log.js';
import { eventText, type EventStream } from './event-stream.js';
import { allAfter, type Followed, type FollowGroup, type GroupMember } from './follow-group.js';
import { FollowedPosition } from './followed-position.js';
import { eventsOf } from './record-events.js';
import { Gathered, type BegunAnswer } from './shared-answer.js';

const ignore = (): void => undefined;
const firstCursor = '0'.repeat(16);

/** What a follower is given by `Followers`. */
export interface FollowerWork {
  readonly group: FollowGroup;
  readonly followed: Followed;
  readonly stream: EventStream;
  /** Bound how many followers look for the first records of a scan at once. */
  readonly permits: Permits;
  readonly timeoutMs: number;
  /** Why the client may not follow any longer at `nowMs` (ms since the epoch); null while it may. */
  readonly objection: (nowMs: number) => ProblemError | null;
  readonly onBegin: () => void;
  /** Called once when the follower ends, for whatever reason. */
  readonly onOver: () => void;
  readonly onFailure: (error: unknown) => void;
}

/**
 * One client that follows. First it catches up: by scans of its own at its own pace, or by the answer of a scan that it shares with clients
 * that began at the same time. Then it joins its group and takes records from the group's log. Because it takes log entries from before its
 * last scan on, some of them contain records that the scan has covered too. The state that the scan read (`#seen`) tells which ones.
 */
export class Follower implements GroupMember {
  readonly group: FollowGroup;
  readonly stream: EventStream;
  readonly followed: Followed;
  next = 0;
  readonly #work: FollowerWork;
  readonly #position: FollowedPosition;
  /** The state that the last scan read; null before joining, and once the log can't contain records of that state any more. */
  #seen: SeenState | null = null;
  /** From this reading on the log contains no records of `#seen`. */
  #firstNewReading = 0;
  /** Whether it has caught up and takes records from the log. */
  #isJoined = false;
  #isOver = false;
  #pieces: TimedPieces | undefined;

  /** @param after the position that the client continues from; undefined if it gave none */
  constructor(work: FollowerWork, after: Query['after']) {
    this.#work = work;
    this.group = work.group;
    this.stream = work.stream;
    this.followed = work.followed;
    this.#position = new FollowedPosition(after === undefined ? firstCursor : formatCursor(after));
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
    if (query.after === undefined && this.#position.last === firstCursor)
      this.#position.last = formatCursor(seen.last);
    while (this.next < this.group.log.first && !this.#isOver) {
      await this.#work.permits.take();
      seen = await this.#scan(allAfter(this.followed, { partition: 0, ordinal: 0 }), seen);
    }
    if (this.#isOver) return;
    this.#seen = seen;
    this.#isJoined = true;
    this.take();
  }

  /** Sends the records that the stream begins with, from a shared answer if there is one. Returns the state that they were read from. */
  async #begun(query: Query): Promise<SeenState> {
    const { permits } = this.#work;
    const { shared, log } = this.group;
    const arrival = shared.arrive();
    try {
      await permits.take();
      const answer = this.#isOver ? null : shared.find(query, arrival, log.first);
      if (answer === null) return await this.#scan(query, null);
      this.next = answer.next;
      this.#firstNewReading = answer.firstNewReading;
      // Many clients may wait for this answer: other work gets a turn of the event loop between two of them.
      await nextTurn();
      permits.give();
      return await this.#send(answer);
    } finally {
      shared.leave();
    }
  }

  async #send({ events, seen }: BegunAnswer): Promise<SeenState> {
    for (const piece of events) {
      if (this.#isOver) throw clientGoneError();
      const bytes = this.#position.take(piece, null);
      if (bytes !== null) await this.stream.write(bytes);
    }
    return seen;
  }

  /**
   * Sends the records of a query that have become visible since the state `before`, or all of them if that is null. Returns the state that
   * was read. The caller has taken a permit; this method gives it back.
   */
  async #scan(query: Query, before: SeenState | null): Promise<SeenState> {
    const { permits, timeoutMs } = this.#work;
    const { shared } = this.group;
    let hasPermit = true;
    const givePermit = (): void => {
      if (hasPermit) permits.give();
      hasPermit = false;
    };
    const pieces = new TimedPieces(timeoutMs);
    this.#pieces = pieces;
    const sharing = before === null ? shared.begin(query) : null;
    const found = new Gathered();
    // The follower takes log entries from here on: what the group reads during the scan must not be missed.
    this.next = this.group.log.end;
    const { next } = this;
    let firstNewReading = 0;
    let seen: SeenState | undefined;
    // A scan that waits for its turn does no work, so another follower may have the permit.
    const onTurn = (waits: boolean): void => {
      if (waits) givePermit();
    };
    const begin = async (signal: () => AbortSignal): Promise<Scan> => {
      const { scan, state } = await this.followed.store.scanAdded(query, before, {
        signal,
        lends: true,
        onTurn,
      });
      seen = state;
      // The reading under way and the one after it may continue from states older than this one, and so find records of this scan.
      firstNewReading = this.group.readings + 2;
      this.#firstNewReading = firstNewReading;
      return scan;
    };
    const take = async (): Promise<Buffer | null | undefined> => {
      const piece = await pieces.next();
      if (piece === undefined) return undefined;
      const events = eventsOf(piece);
      if (sharing !== null) found.add(events);
      return this.#position.take(events, null);
    };
    const share = (): void => {
      if (sharing !== null && found.events !== null)
        shared.note(sharing, { events: found.events, seen: seen!, next, firstNewReading });
    };
    try {
      if (this.#isOver) throw clientGoneError();
      await pieces.start(begin);
      // Most scans do all their work for the first piece, so the permit covers just that.
      let bytes = await take();
      // The answer is shared before the permit is free: the next follower would begin a scan of its own for the same records.
      if (pieces.isAtEnd) share();
      givePermit();
      // From here on the turns of long answers bound the memory. No permit is taken again: a scan that waits for one would keep its turn.
      for (; bytes !== undefined; bytes = await take()) {
        if (bytes !== null) await this.stream.write(bytes);
        if (this.#isOver) throw clientGoneError();
      }
    } finally {
      givePermit();
      await pieces.close();
    }
    share();
    const behind = this.#position.takeEarlier();
    if (behind !== null) await this.stream.write(eventText('behind', behind));
    return seen!;
  }

  take(): void {
    if (!this.#isJoined || this.#isOver) return;
    const { log } = this.group;
    while (this.next < log.end && !this.stream.isWriting) {
      const pieces: Buffer[] = [];
      for (let bytes = 0; this.next < log.end && bytes < followWriteBytesMax;) {
        const piece = this.#takeEntry(log.at(this.next++));
        if (piece === null) continue;
        pieces.push(piece);
        bytes += piece.length;
      }
      if (pieces.length === 0) continue;
      // A write that fails means that the client has gone, which `whenGone` reports.
      this.stream.write(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces))?.catch(ignore);
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
    const isKnown = seen === null ? null : (cursor: string) => seen.has(parseCursor(cursor)!);
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
    this.#pieces?.interrupt(new LogstrataError('cancelled', 'the stream is over'));
    this.group.leave(this);
    this.#work.onOver();
  }
}
