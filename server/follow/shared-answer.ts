import { formatCursor, type Query, type SeenState } from '../../engine/index.js';
import { followSharedBytesMax, followSharedMax } from '../http/http-limits.js';
import type { RecordEvents } from './record-events.js';

/** The records that a stream begins with, as one scan has found them, and where the log of the group continues after them. */
export interface BegunAnswer {
  readonly events: readonly RecordEvents[];
  /** The state that the scan read. */
  readonly seen: SeenState;
  /** Index of the log entry to continue with. Entries of early readings may repeat records of `seen`. */
  readonly next: number;
  /** From this reading on the log contains no records of `seen`. */
  readonly firstNewReading: number;
}

/** A scan whose answer other clients may use too. */
export interface SharedScan {
  /** Equal for scans that ask for the same records. */
  readonly key: string;
  /** Number of clients that had arrived when the scan began. It may answer only these. */
  readonly arrivals: number;
}

/**
 * Lets clients of a group that begin at the same place share one scan. If a scan finds little, its answer is kept for the clients that were
 * already waiting when the scan began. Answers are dropped when no client waits any more.
 */
export class SharedAnswers {
  #arrivals = 0;
  #waiting = 0;
  /** By `SharedScan.key`, the oldest first. */
  readonly #answers = new Map<string, { readonly scan: SharedScan; readonly answer: BegunAnswer }>();

  /** Notes that a client begins to wait. Returns its number for `find`; `leave` must follow. */
  arrive(): number {
    this.#waiting++;
    return this.#arrivals++;
  }

  /** Notes that a client waits no longer. */
  leave(): void {
    if (--this.#waiting === 0) this.#answers.clear();
  }

  /** Notes that a scan begins now. */
  begin(query: Query): SharedScan {
    return { key: keyOf(query), arrivals: this.#arrivals };
  }

  /** Keeps the complete answer of a scan, unless one that began later is known for the same records. */
  note(scan: SharedScan, answer: BegunAnswer): void {
    const { key, arrivals } = scan;
    if ((this.#answers.get(key)?.scan.arrivals ?? 0) > arrivals) return;
    this.#answers.delete(key);
    this.#answers.set(key, { scan, answer });
    if (this.#answers.size > followSharedMax) this.#answers.delete(this.#answers.keys().next().value!);
  }

  /**
   * The answer for `query` of a scan that began after this client arrived. null if there is none, or if the log has dropped entries that
   * follow it.
   */
  find(query: Query, arrival: number, firstOfLog: number): BegunAnswer | null {
    const found = this.#answers.get(keyOf(query));
    return found !== undefined && arrival < found.scan.arrivals && found.answer.next >= firstOfLog
      ? found.answer
      : null;
  }
}

/** Clients of a group have the same filters and fields, so their queries differ in these two values only. */
function keyOf({ after, limit }: Query): string {
  return `${after === undefined ? '' : formatCursor(after)} ${limit}`;
}

/** Collects the events of a scan up to `followSharedBytesMax`; gives up on a scan that finds more. */
export class Gathered {
  #events: RecordEvents[] | null = [];
  #bytes = 0;

  /** null if the scan has found too much to share. */
  get events(): readonly RecordEvents[] | null {
    return this.#events;
  }

  add(events: RecordEvents): void {
    this.#bytes += events.bytes.length;
    if (this.#bytes > followSharedBytesMax) this.#events = null;
    this.#events?.push(events);
  }
}
