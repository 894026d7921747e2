import {
  comparePositions,
  formatCursor,
  jointOf,
  parseCursor,
  type JointPosition,
  type Position,
  type SeveralCursors,
} from '../../engine/index.js';
import { cursorInEvent, cursorOf, eventsFrom, eventsToLines, type RecordEvents } from './event-stream.js';

/** A summary of records that became visible at positions before a client's own. The client is told of them but not sent them. */
export interface EarlierRecords {
  readonly count: number;
  /** The lowest cursor among them; of several agents, the first. */
  readonly lowest: string;
}

const firstCursor = '0'.repeat(16);
const beginning: Position = { partition: 0, ordinal: 0 };

/**
 * The position of one client: the last cursor that it was sent, or the one that it began from. New records with a higher cursor are sent to
 * the client. New records with a lower cursor are only counted, and the client is told the count.
 */
export abstract class FollowedPosition {
  /** Cursor of the last record that was sent, or the cursor that the client began from. */
  last: string = firstCursor;
  #earlier: EarlierRecords | null = null;

  /** Whether it is before every record. */
  get isFirst(): boolean {
    return this.last === firstCursor;
  }

  get after(): Position {
    return this.parse(this.last);
  }

  /** Moves to a position without a record that was sent. */
  abstract begin(position: Position): void;

  /** The position of a cursor. */
  abstract parse(cursor: string): Position;

  /**
   * Takes events that have become visible, in their order. Returns the bytes of those after the position, which the caller must send,
   * and moves the position to the last of them; null if there are none. Events at or before the position are counted, except records that
   * the client's last scan has covered (`isKnown`).
   */
  abstract take(events: RecordEvents, isKnown: ((cursor: string) => boolean) | null): Buffer | null;

  /**
   * Takes events that were visible when the client began. Returns the bytes of those after the position and moves the position to the last
   * of them; null if there are none. The client does not wait for the others, so they are not counted.
   */
  abstract takeFirst(events: RecordEvents): Buffer | null;

  /** Returns and resets the summary of records that came before the client's position; null if none came since the last call. */
  takeEarlier(): EarlierRecords | null {
    const earlier = this.#earlier;
    this.#earlier = null;
    return earlier;
  }

  protected addEarlier(cursor: string, count: number): void {
    const before = this.#earlier;
    const isLowest = before === null || (cursor.length === firstCursor.length && cursor < before.lowest);
    this.#earlier = { count: (before?.count ?? 0) + count, lowest: isLowest ? cursor : before.lowest };
  }
}

/** A position among the records of one agent. */
class PlainPosition extends FollowedPosition {
  begin(position: Position): void {
    this.last = formatCursor(position);
  }

  parse(cursor: string): Position {
    return parseCursor(cursor)!;
  }

  take(events: RecordEvents, isKnown: ((cursor: string) => boolean) | null): Buffer | null {
    const { first, last, ends } = events;
    if (first > this.last) {
      this.last = last;
      return events.bytes;
    }
    if (last <= this.last && isKnown === null) {
      this.addEarlier(first, ends.length);
      return null;
    }
    for (let i = 0; i < ends.length; i++) {
      const cursor = cursorOf(events, i);
      if (cursor > this.last) {
        this.last = last;
        return eventsFrom(events, i);
      }
      if (isKnown?.(cursor) !== true) this.addEarlier(cursor, 1);
    }
    return null;
  }

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
}

/** Cursors of several agents as texts: the agent's number from 1, and a position of each agent. All positions have the same length. */
type Cut = readonly string[];

const cutOf = (cursor: string): Cut => cursor.split('.').slice(1);
const ownOf = (cut: Cut): number => Number(cut[0]);

/** What all clients need to know of events: the first and last cut, and whether no position goes back from one event to the next. */
interface Cuts {
  readonly first: Cut;
  readonly last: Cut;
  readonly areNested: boolean;
}

const cutsOfEvents = new WeakMap<RecordEvents, Cuts>();

function cutsOf(events: RecordEvents): Cuts {
  let known = cutsOfEvents.get(events);
  if (known !== undefined) return known;
  const first = cutOf(events.first);
  let last = first;
  let areNested = true;
  for (let i = 1; i < events.ends.length; i++) {
    const next = cutOf(cursorOf(events, i));
    areNested &&= last.every((position, k) => k === 0 || position <= next[k]!);
    last = next;
  }
  known = { first, last, areNested };
  cutsOfEvents.set(events, known);
  return known;
}

/** A position among the records of several agents: one position of each, up to which it has been passed. */
class JointFollowedPosition extends FollowedPosition {
  #cut: string[] = [];

  constructor(private readonly cursors: SeveralCursors) {
    super();
  }

  begin(position: Position): void {
    const joint = jointOf(position);
    this.last = joint === undefined ? firstCursor : this.cursors.format(joint);
    this.#cut = joint === undefined ? [] : [...cutOf(this.last)];
  }

  parse(cursor: string): Position {
    return cursor === firstCursor ? beginning : (this.cursors.parse(cursor) as JointPosition);
  }

  take(events: RecordEvents, isKnown: ((cursor: string) => boolean) | null): Buffer | null {
    const { first, last, areNested } = cutsOf(events);
    const isBehind = first.every((position, k) => k === 0 || position >= (this.#cut[k] ?? firstCursor));
    if (areNested && isBehind && this.#isNew(first)) {
      this.#cut = [...last];
      this.last = events.last;
      return events.bytes;
    }
    const taken: Buffer[] = [];
    for (let i = 0; i < events.ends.length; i++) {
      const cursor = cursorOf(events, i);
      const cut = cutOf(cursor);
      if (this.#isNew(cut)) taken.push(this.#moved(events, i, cursor, cut));
      else if (isKnown?.(cursor) !== true) this.addEarlier(cursor, 1);
    }
    return taken.length === 0 ? null : Buffer.concat(taken);
  }

  takeFirst(events: RecordEvents): Buffer | null {
    const taken = this.take(events, () => true);
    return taken;
  }

  /** Whether the record of a cut is behind the position of its agent. */
  #isNew(cut: Cut): boolean {
    const own = ownOf(cut);
    return cut[own]! > (this.#cut[own] ?? firstCursor);
  }

  /** Moves to an event. Its cursor gets the positions of this client where they are later: a client that goes on from it would else get records again. */
  #moved(events: RecordEvents, index: number, cursor: string, cut: Cut): Buffer {
    const moved = cut.map((position, k) => {
      const before = k === 0 ? undefined : this.#cut[k];
      return before !== undefined && before > position ? before : position;
    });
    this.#cut = moved;
    this.last = [cursor.slice(0, cursor.indexOf('.')), ...moved].join('.');
    const { bytes, ends, cursorAt } = events;
    const start = index === 0 ? 0 : ends[index - 1]!;
    const event = bytes.subarray(start, ends[index]);
    if (this.last === cursor) return event;
    const own = Buffer.from(event);
    own.write(this.last, cursorAt, 'latin1');
    if (cursorAt === cursorInEvent) own.write(this.last, cursorAt + cursor.length + eventsToLines, 'latin1');
    return own;
  }
}

/** The position of a client that begins after a position; before every record if it gave none. */
export function followedFrom(
  cursors: SeveralCursors | undefined,
  after: Position | undefined,
): FollowedPosition {
  const position = cursors === undefined ? new PlainPosition() : new JointFollowedPosition(cursors);
  position.begin(after ?? beginning);
  return position;
}

/** Whether a place has passed a record that stands behind another place. */
export function isBeyond(place: Position, other: Position): boolean {
  const [joint, last] = [jointOf(place), jointOf(other)];
  if (joint === undefined || last === undefined) return comparePositions(place, other) > 0;
  return joint.of.some((position, k) => comparePositions(position, last.of[k]!) > 0);
}

/** Whether two places have passed the same records. */
export function isSamePlace(a: Position | undefined, b: Position | undefined): boolean {
  const [one, other] = [jointOf(a), jointOf(b)];
  if (one === undefined || other === undefined) return false;
  return one.of.every((position, k) => comparePositions(position, other.of[k]!) === 0);
}
