import { cursorOf, eventsFrom, type RecordEvents } from './record-events.js';

/** Records that became visible at positions before a client's own. */
export interface Behind {
  readonly count: number;
  /** The cursor of the first of them. */
  readonly lowest: string;
}

/**
 * How far one client has come: the last cursor that it was sent, or began from. Records behind it are sent; of those that come to stand
 * before it, it is told how many there are.
 */
export class FollowedPosition {
  /** A cursor. */
  last: string;
  #behind: Behind | null = null;

  constructor(last: string) {
    this.last = last;
  }

  /**
   * What the client is to be sent of events that have become visible, ascending by cursor; null for nothing. The others count as having come
   * before its position, but for those that it has been sent, or has passed, already (`isKnown`).
   */
  take(events: RecordEvents, isKnown: ((cursor: string) => boolean) | null): Buffer | null {
    const { first, last, ends } = events;
    if (first > this.last) {
      this.last = last;
      return events.bytes;
    }
    if (last <= this.last && isKnown === null) {
      this.#addBehind(first, ends.length);
      return null;
    }
    for (let i = 0; i < ends.length; i++) {
      const cursor = cursorOf(events, i);
      if (cursor > this.last) {
        this.last = last;
        return eventsFrom(events, i);
      }
      if (isKnown?.(cursor) !== true) this.#addBehind(cursor, 1);
    }
    return null;
  }

  /** The records since the last call that came before the client's position. */
  takeBehind(): Behind | null {
    const behind = this.#behind;
    this.#behind = null;
    return behind;
  }

  #addBehind(cursor: string, count: number): void {
    const before = this.#behind;
    const lowest = before === null || cursor < before.lowest ? cursor : before.lowest;
    this.#behind = { count: (before?.count ?? 0) + count, lowest };
  }
}
