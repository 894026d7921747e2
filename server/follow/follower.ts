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

/** What a follower works with. */
export interface FollowerWork {
  readonly group: FollowGroup;
  readonly followed: Followed;
  readonly stream: EventStream;
  /** For catching up. */
  readonly permits: Permits;
  readonly timeoutMs: number;
  /** What keeps the client from following any longer. */
  readonly objection: (nowMs: number) => ProblemError | null;
  readonly onBegin: () => void;
  /** Told of the end, however it comes about. */
  readonly onOver: () => void;
  readonly onFailure: (error: unknown) => void;
}

/**
 * One client that follows. It catches up by scans of its own at its own pace, or by what a scan has found for those who waited with it, and
 * then takes what its group reads. The entries of the group's
 * log since before the last of these scans may have records that the scan has given too: those are known by the state that it has seen.
 */
export class Follower implements GroupMember {
  readonly group: FollowGroup;
  readonly stream: EventStream;
  readonly followed: Followed;
  next = 0;
  readonly #work: FollowerWork;
  readonly #position: FollowedPosition;
  /** The records that its own scans have gone over, while the log may have some of them. */
  #seen: SeenState | null = null;
  /** From this reading on the log has none of them. */
  #firstNewReading = 0;
  #isJoined = false;
  #isOver = false;
  #pieces: TimedPieces | undefined;

  /** @param after the cursor that the client goes on from; undefined where it has none */
  constructor(work: FollowerWork, after: Query['after']) {
    this.#work = work;
    this.group = work.group;
    this.stream = work.stream;
    this.followed = work.followed;
    this.#position = new FollowedPosition(after === undefined ? firstCursor : formatCursor(after));
    this.stream.onFree = () => this.take();
    this.group.join(this);
  }

  /** Answers `query`, and follows from then on. Rejects where it fails before anything was sent. */
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
    // Where the client had no cursor, its place is behind what there was.
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

  /** Sends what the stream begins with. Returns the state that was asked. */
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
      // So many may wait that their answers would hold up all else.
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
   * Sends what a query gives of the records that have become visible since a state. Returns the state that it was asked of. Gives back the permit
   * that the caller has taken.
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
    // From here on the log has all that the group reads.
    this.next = this.group.log.end;
    const { next } = this;
    let firstNewReading = 0;
    let seen: SeenState | undefined;
    // A scan that waits for its turn does nothing: others may begin.
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
      // The reading that is under way may go on from an older state than this one, and the next one's may too.
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
      // What a scan has to do for its first piece is all of most.
      let bytes = await take();
      // Before the next one may begin a scan for the same.
      if (pieces.isAtEnd) share();
      givePermit();
      // From here on the turns of long answers bound what all of them take. A scan that waited for a permit would keep its turn meanwhile.
      for (; bytes !== undefined; bytes = await take()) {
        if (bytes !== null) await this.stream.write(bytes);
        if (this.#isOver) throw clientGoneError();
      }
    } finally {
      givePermit();
      await pieces.close();
    }
    share();
    const behind = this.#position.takeBehind();
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
      // A client that has gone is told of elsewhere.
      this.stream.write(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces))?.catch(ignore);
    }
  }

  /** What an entry of the log is to the client. */
  #takeEntry({ reading, events }: LogEntry): Buffer | null {
    if (reading >= this.#firstNewReading) this.#seen = null;
    if (events === null) {
      const behind = this.#position.takeBehind();
      return behind === null ? null : eventText('behind', behind);
    }
    const seen = this.#seen;
    const isKnown = seen === null ? null : (cursor: string) => seen.has(parseCursor(cursor)!);
    return this.#position.take(events, isKnown);
  }

  miss(): void {
    if (!this.#isJoined) return;
    const { last } = this.#position;
    const detail = `this client takes its events too slowly: more than the server keeps for it have come since ${last}`;
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

  /** Ends the stream, and says why, where the client may not follow any longer. Returns whether that is so. */
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

  /** The client has gone, or has been told that the stream is over. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#seen = null;
    this.#pieces?.interrupt(new LogstrataError('cancelled', 'the stream is over'));
    this.group.leave(this);
    this.#work.onOver();
  }
}
