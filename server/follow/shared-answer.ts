import { formatCursor, type Query, type SeenState } from '../../engine/index.js';
import { followSharedBytesMax, followSharedMax } from '../http/http-limits.js';
import type { RecordEvents } from './record-events.js';

/** All that a client was given when it began, and where the log of its group goes on. */
export interface BegunAnswer {
  readonly events: readonly RecordEvents[];
  /** The state that was asked. */
  readonly seen: SeenState;
  /** The first entry of the log that has what came since, and the first reading that has nothing else. */
  readonly next: number;
  readonly firstNewReading: number;
}

/** A scan that may answer others too. */
export interface SharedScan {
  /** What it asks for. */
  readonly key: string;
  /** The clients that had come when it began. */
  readonly arrivals: number;
}

/**
 * Has clients of a group that begin at the same place share a scan: one that begins while others wait to begin answers them as well, where it
 * finds little. What it found is kept as long as anybody waits.
 */
export class SharedAnswers {
  #arrivals = 0;
  #waiting = 0;
  /** By what was asked, the oldest first. */
  readonly #answers = new Map<string, { readonly scan: SharedScan; readonly answer: BegunAnswer }>();

  /** A client begins to wait. Gives its number; `leave` must follow. */
  arrive(): number {
    this.#waiting++;
    return this.#arrivals++;
  }

  /** A client waits no longer. */
  leave(): void {
    if (--this.#waiting === 0) this.#answers.clear();
  }

  /** A scan begins, for the client that does it and for those that wait. */
  begin(query: Query): SharedScan {
    return { key: keyOf(query), arrivals: this.#arrivals };
  }

  /** What a scan has found is all that there is. */
  note(scan: SharedScan, answer: BegunAnswer): void {
    const { key, arrivals } = scan;
    if ((this.#answers.get(key)?.scan.arrivals ?? 0) > arrivals) return;
    this.#answers.delete(key);
    this.#answers.set(key, { scan, answer });
    if (this.#answers.size > followSharedMax) this.#answers.delete(this.#answers.keys().next().value!);
  }

  /** What a scan has found that began after this client had come, for the same query; null where there is none, or the log goes on elsewhere. */
  find(query: Query, arrival: number, firstOfLog: number): BegunAnswer | null {
    const found = this.#answers.get(keyOf(query));
    return found !== undefined && arrival < found.scan.arrivals && found.answer.next >= firstOfLog
      ? found.answer
      : null;
  }
}

/** The same for those who begin at the same place: of a group, all else that they ask for is the same. */
function keyOf({ after, limit }: Query): string {
  return `${after === undefined ? '' : formatCursor(after)} ${limit}`;
}

/** Gathers what a scan finds, as long as it is little. */
export class Gathered {
  #events: RecordEvents[] | null = [];
  #bytes = 0;

  /** Null where it was too much. */
  get events(): readonly RecordEvents[] | null {
    return this.#events;
  }

  add(events: RecordEvents): void {
    this.#bytes += events.bytes.length;
    if (this.#bytes > followSharedBytesMax) this.#events = null;
    this.#events?.push(events);
  }
}
