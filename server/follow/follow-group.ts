import { setTimeout as delay } from 'node:timers/promises';
import {
  isLogstrataError,
  LogstrataError,
  type Query,
  type RecordStore,
  type Schema,
  type Seen,
} from '../../engine/index.js';
import { followGatherMs, followKeptBytesMax, followPatienceMs } from '../http/http-limits.js';
import { TimedPieces } from '../pace/timed-pieces.js';
import { Backlogs, allAfter, beforeAll, type Followed } from './backlogs.js';
import { EventLog, type LogRoom, eventsOf, type RecordEvents } from './event-stream.js';

/** A client of a group, as the group sees it. */
export interface GroupMember {
  /** Index of the first entry of the log that the member has not taken. */
  readonly next: number;
  /** Called when the log has new entries. Takes them for as long as the client keeps pace. */
  take(): void;
  /** Called when the log has dropped entries that the member had not taken. */
  miss(): void;
  /** Ends the stream without a reason; the client is expected to reconnect. */
  end(): void;
  /** Ends the stream and tells the client what failed. */
  fail(error: unknown): void;
}

/**
 * The clients that follow the same records of an agent. When commits make records visible, the group reads these records once for all
 * clients, one or several commits at a time, and puts them into its log. Each client takes them from the log at its own pace.
 */
export class FollowGroup {
  readonly log: EventLog;
  /** What clients take before they take from the log. */
  readonly backlogs: Backlogs;
  readonly schema: Schema;
  /** Resolves when the state that the first reading continues from is known. */
  readonly ready: Promise<void>;
  readonly #query: Query;
  readonly #members = new Set<GroupMember>();
  readonly #endListening: () => void;
  /** Number of readings that have begun. */
  #readings = 0;
  /** The state up to which the group has read; null until `ready`. */
  #seen: Seen | null = null;
  #pieces: TimedPieces | undefined;
  /** Whether there was a commit since the last reading began. */
  #isChanged = false;
  #isRunning = false;
  #isOver = false;

  /** @param onOver is called once, when the last member has left or the first state can't be read */
  constructor(
    private readonly followed: Followed,
    private readonly timeoutMs: number,
    private readonly room: LogRoom,
    private readonly onOver: () => void,
  ) {
    const { store } = followed;
    this.log = new EventLog(room.budget);
    this.schema = store.schema;
    this.#query = allAfter(followed, beforeAll);
    const logEnd = (): number => this.log.end;
    const firstNewReading = (): number => this.firstNewReading;
    const onUnneeded = (): void => this.#dropTaken();
    this.backlogs = new Backlogs({ followed, timeoutMs, room, logEnd, firstNewReading, onUnneeded });
    this.#endListening = store.onChange(() => this.#note());
    this.ready = this.#begin();
    // A failure is told to each member that waits for it.
    this.ready.catch(() => undefined);
  }

  get store(): RecordStore {
    return this.followed.store;
  }

  /**
   * The reading from which on the log contains no records of the state that is the newest now. The reading under way and the one after it may
   * continue from older states, and so find such records.
   */
  get firstNewReading(): number {
    return this.#readings + 2;
  }

  /** Whether the group can take new members: it is open, and the agent still has the fields that the group was made for. */
  get isCurrent(): boolean {
    return !this.#isOver && this.followed.store.schema === this.schema;
  }

  /** Bytes that `shrink` can free. */
  get spareBytes(): number {
    return this.log.bytes;
  }

  join(member: GroupMember): void {
    this.#members.add(member);
  }

  leave(member: GroupMember): void {
    if (!this.#members.delete(member)) return;
    if (this.#members.size === 0) this.#close();
    else this.#dropTaken();
  }

  /** Drops the oldest entries until the log holds at most `bytes`. Members that had not taken them are told (`miss`). */
  shrink(bytes: number): void {
    if (this.log.bytes <= bytes) return;
    this.log.shrink(bytes);
    const { first } = this.log;
    for (const member of [...this.#members]) if (member.next < first) member.miss();
  }

  async #begin(): Promise<void> {
    try {
      this.#seen = await this.followed.store.seen();
    } catch (error) {
      this.#close();
      throw error;
    }
    // Commits that came before the state was known have started no reading, so one is made in any case.
    this.#note();
  }

  #note(): void {
    this.#isChanged = true;
    if (!this.#isRunning && this.#seen !== null) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#isChanged && !this.#isOver) {
        await delay(followGatherMs);
        this.#isChanged = false;
        if (!this.#isOver) await this.#read(this.#seen!);
      }
    } catch (error) {
      this.#endWith(error);
    } finally {
      this.#isRunning = false;
    }
  }

  /** Reads the records that the newest state has and `seen` had not, and publishes them in the log. */
  async #read(seen: Seen): Promise<void> {
    const reading = ++this.#readings;
    const pieces = new TimedPieces(this.timeoutMs);
    this.#pieces = pieces;
    try {
      const { store } = this.followed;
      let bytes = 0;
      let patienceMs = followPatienceMs;
      await pieces.start(async (signal) => {
        const { scan, state } = await store.scanAdded(this.#query, seen, { signal, lends: true });
        this.#seen = state;
        return scan;
      });
      for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) {
        const events = eventsOf(piece);
        bytes += events.bytes.length;
        this.#publish(reading, events);
        if (bytes > followKeptBytesMax / 2) patienceMs = await this.#waitForMembers(patienceMs);
      }
      if (bytes > 0) this.#publish(reading, null);
    } finally {
      await pieces.close();
    }
  }

  #publish(reading: number, events: RecordEvents | null): void {
    if (this.#isOver) return;
    this.log.add({ reading, events });
    for (const member of [...this.#members]) member.take();
    this.#dropTaken();
    this.shrink(followKeptBytesMax);
    this.room.check();
  }

  /**
   * Pauses a reading of very many records until the log holds at most half of its bound, or `patienceMs` have passed. Returns how much of
   * `patienceMs` is left.
   */
  async #waitForMembers(patienceMs: number): Promise<number> {
    const startMs = performance.now();
    const isLong = (): boolean => this.log.bytes > followKeptBytesMax / 2;
    let leftMs = patienceMs;
    while (isLong() && leftMs > 0 && !this.#isOver) {
      await delay(Math.min(followGatherMs, leftMs));
      leftMs = patienceMs - (performance.now() - startMs);
    }
    return Math.max(0, leftMs);
  }

  #dropTaken(): void {
    let end = Math.min(this.log.end, this.backlogs.firstNeeded);
    for (const { next } of this.#members) end = Math.min(end, next);
    this.log.dropBefore(end);
  }

  #endWith(error: unknown): void {
    if (this.#isOver) return;
    // The fields have changed, or the archive closes. That is no failure: clients learn of the new state when they reconnect.
    const isNatural = isLogstrataError(error) && (error.code === 'conflict' || error.code === 'closed');
    for (const member of [...this.#members]) {
      if (isNatural) member.end();
      else member.fail(error);
    }
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#endListening();
    this.#pieces?.interrupt(new LogstrataError('cancelled', 'nobody follows any more'));
    this.log.dropBefore(this.log.end);
    this.onOver();
  }
}
