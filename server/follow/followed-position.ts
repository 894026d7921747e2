import { cursorOf, eventsFrom, type RecordEvents } from './record-events.js';

/** A summary of records that became visible at positions before a client's own. The client is told of them but not sent them. */
export interface EarlierRecords {
  readonly count: number;
  /** The lowest cursor among them. */
  readonly lowest: string;
}

/**
 * The position of one client: the last cursor that it was sent, or the one that it began from. New records with a higher cursor are sent to
 * the client. New records with a lower cursor are only counted, and the client is told the count.
 */
export class FollowedPosition {
  /** Cursor of the last record that was sent, or the cursor that the client began from. */
  last: string;
  #earlier: EarlierRecords | null = null;

  constructor(last: string) {
    this.last = last;
  }

  /**
   * Takes events that have become visible, ascending by cursor. Returns the bytes of those after the position, which the caller must send,
   * and moves the position to the last of them; null if there are none. Events at or before the position are counted, except records that
   * the client's last scan has covered (`isKnown`).
   */
  take(events: RecordEvents, isKnown: ((cursor: string) => boolean) | null): Buffer | null {
    const { first, last, ends } = events;
    if (first > this.last) {
      this.last = last;
      return events.bytes;
    }
    if (last <= this.last && isKnown === null) {
      this.#addEarlier(first, ends.length);
      return null;
    }
    for (let i = 0; i < ends.length; i++) {
      const cursor = cursorOf(events, i);
      if (cursor > this.last) {
        this.last = last;
        return eventsFrom(events, i);
      }
      if (isKnown?.(cursor) !== true) this.#addEarlier(cursor, 1);
    }
    return null;
  }

  /**
   * Takes events that were visible when the client began. Returns the bytes of those after the position and moves the position to the last
   * of them; null if there are none. The client does not wait for the others, so they are not counted.
   */
  takeFirst(events: RecordEvents): Buffer | null {
    let low = 0;
    let high = events.ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (cursorOf(events, middle) > this.last) high = middle;
      else low = middle + 1;
    }
    if (low === events.ends.length) return null;
    this.last = events.last;
    return low === 0 ? events.bytes : eventsFrom(events, low);
  }

  /** Returns and resets the summary of records that came before the client's position; null if none came since the last call. */
  takeEarlier(): EarlierRecords | null {
    const earlier = this.#earlier;
    this.#earlier = null;
    return earlier;
  }

  #addEarlier(cursor: string, count: number): void {
    const before = this.#earlier;
    const lowest = before === null || cursor < before.lowest ? cursor : before.lowest;
    this.#earlier = { count: (before?.count ?? 0) + count, lowest };
  }
}
