import { setTimeout as delay } from 'node:timers/promises';
import {
  type ReadableStore,
  type AnswerForm,
  isLogstrataError,
  LogstrataError,
  type Predicate,
  type Query,
  type Schema,
  type SeenState,
} from '../../engine/index.js';
import {
  followGatherMs,
  followLogBytesMax,
  followLogsBytesMax,
  followPatienceMs,
} from '../http/http-limits.js';
import { TimedPieces } from '../pace/timed-pieces.js';
import { EventLog, type LogBudget } from './event-log.js';
import { eventsOf, type RecordEvents } from './record-events.js';
import { SharedAnswers } from './shared-answer.js';

/** What is followed. */
export interface Followed {
  readonly agent: string;
  readonly store: ReadableStore;
  readonly predicates: readonly Predicate[];
  readonly form: AnswerForm | undefined;
}

/** What the logs of all groups may take together. */
export interface LogRoom {
  readonly budget: LogBudget;
  /** Makes room where they take more. */
  readonly onFull: () => void;
}

/** A client of a group. */
export interface GroupMember {
  /** The first entry of the log that it has not taken. */
  readonly next: number;
  /** The log has more. Takes as much of it as its client has room for. */
  take(): void;
  /** Entries that it has not taken are gone. */
  miss(): void;
  /** The stream ends: its client is to connect again. */
  end(): void;
  fail(error: unknown): void;
}

/** All records, from the first one on. */
export function allAfter({ predicates, form }: Followed, after: Query['after']): Query {
  return { limit: Number.MAX_SAFE_INTEGER, after, predicates, form };
}

const beforeAll = { partition: 0, ordinal: 0 };

/**
 * Those who follow the same records of an agent. What becomes visible is read once for all of them, commit by commit or a few together, and
 * goes to a log that each takes it from.
 */
export class FollowGroup {
  readonly log: EventLog;
  /** What those who begin share. */
  readonly shared = new SharedAnswers();
  readonly schema: Schema;
  /** The state that the first reading goes on from is known. */
  readonly ready: Promise<void>;
  readonly #followed: Followed;
  readonly #query: Query;
  readonly #timeoutMs: number;
  readonly #room: LogRoom;
  readonly #onOver: () => void;
  readonly #members = new Set<GroupMember>();
  readonly #endListening: () => void;
  /** Readings that have begun. */
  readings = 0;
  #seen: SeenState | null = null;
  #pieces: TimedPieces | undefined;
  #isChanged = false;
  #isRunning = false;
  #isOver = false;

  /** @param onOver is called once nobody is in the group any more, or it can't go on */
  constructor(followed: Followed, timeoutMs: number, room: LogRoom, onOver: () => void) {
    const { store } = followed;
    this.log = new EventLog(room.budget);
    this.#room = room;
    this.schema = store.schema;
    this.#followed = followed;
    this.#query = allAfter(followed, beforeAll);
    this.#timeoutMs = timeoutMs;
    this.#onOver = onOver;
    this.#endListening = store.onChange(() => this.#note());
    this.ready = this.#begin();
    // A failure is told to each member that waits for it.
    this.ready.catch(() => undefined);
  }

  get store(): ReadableStore {
    return this.#followed.store;
  }

  /** Whether the agent still is the one that the group was made for. */
  get isCurrent(): boolean {
    return !this.#isOver && this.#followed.store.schema === this.schema;
  }

  join(member: GroupMember): void {
    this.#members.add(member);
  }

  leave(member: GroupMember): void {
    if (!this.#members.delete(member)) return;
    if (this.#members.size === 0) this.#close();
    else this.#dropTaken();
  }

  /** Drops entries until the log has no more than `bytes`, also those that some have not taken. */
  shrink(bytes: number): void {
    if (this.log.bytes <= bytes) return;
    let end = this.log.first;
    for (let left = this.log.bytes; left > bytes; end++) left -= this.log.at(end).events?.bytes.length ?? 0;
    this.log.dropBefore(end);
    for (const member of [...this.#members]) if (member.next < end) member.miss();
  }

  async #begin(): Promise<void> {
    try {
      this.#seen = await this.#followed.store.seen();
    } catch (error) {
      this.#close();
      throw error;
    }
    // A commit may have become visible before it was listened for anything.
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

  /** Reads what the newest state has beyond the one that was read last. */
  async #read(seen: SeenState): Promise<void> {
    const reading = ++this.readings;
    const pieces = new TimedPieces(this.#timeoutMs);
    this.#pieces = pieces;
    try {
      const { store } = this.#followed;
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
        if (bytes > followLogBytesMax / 2) patienceMs = await this.#waitForMembers(patienceMs);
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
    this.shrink(followLogBytesMax);
    if (this.#room.budget.bytes > followLogsBytesMax) this.#room.onFull();
  }

  /** In the middle of very many records: waits until members have taken what the log has, or `patienceMs` are over. Gives what is left of them. */
  async #waitForMembers(patienceMs: number): Promise<number> {
    const startMs = performance.now();
    const isLong = (): boolean => this.log.bytes > followLogBytesMax / 2;
    let leftMs = patienceMs;
    while (isLong() && leftMs > 0 && !this.#isOver) {
      await delay(Math.min(followGatherMs, leftMs));
      leftMs = patienceMs - (performance.now() - startMs);
    }
    return Math.max(0, leftMs);
  }

  #dropTaken(): void {
    let end = this.log.end;
    for (const { next } of this.#members) end = Math.min(end, next);
    this.log.dropBefore(end);
  }

  #endWith(error: unknown): void {
    if (this.#isOver) return;
    // The fields have changed, or the archive closes: whoever connects again is told how things are by then.
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
    this.#onOver();
  }
}
