import { silenceMsMax, farewellMs, followRetryMs } from '../http/http-limits.js';
import type { ResponseHead, TransportResponse } from '../http/transport.js';
import type { WatchedAnswer } from '../pace/answer-watch.js';

const ignore = (): void => undefined;
const done = Promise.resolve();
const comment = Buffer.from(':\n\n');
const beginning = Buffer.from(`retry: ${followRetryMs}\n\n`);

/** An event that is not a record. It has no id, so a client that reconnects still sends the id of the last record that it got. */
export function eventText(name: string, data: object): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** One stream of server-sent events to one client. Writes happen one after another, at the client's pace. */
export class EventStream {
  /** The last write, which the client has not taken yet while `isWriting`. */
  #writing = done;
  #isWriting = false;
  /** Time of the last write, by `performance.now()`. */
  #lastMs = performance.now();
  #isEnded = false;
  /** Called when a write that had to wait for the client is complete, so that more can be written. */
  onFree: () => void = ignore;

  constructor(
    private readonly response: TransportResponse,
    private readonly head: ResponseHead,
    private readonly watched: WatchedAnswer,
  ) {}

  /** Whether the client has not taken the last write yet. */
  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Sends the head, and tells the client how long to wait before it reconnects. */
  begin(): void {
    this.write(beginning).catch(ignore);
  }

  /**
   * Writes after the write that is still pending, if there is one. Resolves once the client has taken the bytes, and rejects when it has
   * gone.
   */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#isWriting) return this.#writing.then(() => this.write(bytes));
    if (this.#isEnded) return done;
    this.#lastMs = performance.now();
    const writing = this.response.write(this.head, bytes);
    if (!this.response.isWaiting) {
      this.watched.took(bytes.length, this.#lastMs);
      return writing;
    }
    this.#isWriting = true;
    this.watched.waits(bytes.length, this.#lastMs);
    this.#writing = writing.then(() => {
      this.#isWriting = false;
      this.watched.took(bytes.length, performance.now());
      this.onFree();
    });
    return this.#writing;
  }

  /** Sends a comment if nothing was sent for a while. None is needed while the client still has a write to take. */
  comment(nowMs: number): void {
    if (this.isWriting || nowMs - this.#lastMs < silenceMsMax) return;
    this.write(comment).catch(ignore);
  }

  /** Ends the stream after the pending write, with `farewell` as the last event. A client that does not take that write is cut off. */
  end(farewell: Buffer | null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.watched.end();
    if (!this.#isWriting) {
      this.#finish(farewell);
      return;
    }
    const timer = setTimeout(() => this.response.break(), farewellMs).unref();
    this.#writing.then(
      () => {
        clearTimeout(timer);
        this.#finish(farewell);
      },
      () => clearTimeout(timer),
    );
  }

  #finish(farewell: Buffer | null): void {
    if (this.response.isGone) return;
    if (farewell !== null) this.response.write(this.head, farewell).catch(ignore);
    this.response.end();
  }
}

const newline = 10;
/** Length of a cursor of one agent. Those of several are longer. */
const cursorDigits = 16;
const quote = 0x22;
/** Offset of the cursor in a line of JSON. */
const cursorInLine = '{"_cursor":"'.length;
const idHead = Buffer.from('id: ');
const dataHead = Buffer.from('\ndata: ');
/** Bytes that an event has besides its line and its cursor. */
const bytesAround = idHead.length + dataHead.length + 1;
/** Distance between the cursor of an event and that in its line, less the length of a cursor. */
export const eventsToLines = dataHead.length + cursorInLine;
/** Offset of the cursor in an event. */
export const cursorInEvent = idHead.length;

/**
 * One or more records in the order of their positions, as bytes: either events of a stream (`id: <cursor>`, `data: <JSON>`) or plain lines
 * of JSON.
 */
export interface RecordEvents {
  readonly bytes: Buffer;
  /** Offset of the cursor within each record. */
  readonly cursorAt: number;
  /** Offset in `bytes` of the end of each record. */
  readonly ends: readonly number[];
  /** Cursors of the first and the last record. Those of one agent have the same length, so comparing them as texts compares positions. */
  readonly first: string;
  readonly last: string;
}

/**
 * Makes events of lines of JSON. All records that a client catches up on pass through here, so short parts are copied byte by byte: a call
 * for each would take longer.
 */
export function eventsOf(lines: Uint8Array): RecordEvents {
  const source = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  const ends = lineEndsOf(source);
  let cursorsBytes = 0;
  for (let i = 0; i < ends.length; i++) cursorsBytes += cursorBytes(source, startOf(ends, i) + cursorInLine);
  const bytes = Buffer.allocUnsafeSlow(source.length + ends.length * bytesAround + cursorsBytes);
  let at = 0;
  let from = 0;
  for (let i = 0; i < ends.length; i++) {
    const to = ends[i]!;
    for (let k = 0; k < idHead.length; k++) bytes[at++] = idHead[k]!;
    for (let k = from + cursorInLine; source[k] !== quote; k++) bytes[at++] = source[k]!;
    for (let k = 0; k < dataHead.length; k++) bytes[at++] = dataHead[k]!;
    at += source.copy(bytes, at, from, to);
    bytes[at++] = newline;
    ends[i] = at;
    from = to;
  }
  return withBounds(bytes, ends, idHead.length);
}

function lineEndsOf(bytes: Buffer): number[] {
  const ends: number[] = [];
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) ends.push(at + 1);
  return ends;
}

/** Describes lines of JSON without changing them. The result uses the memory of `lines`. */
export function linesAsEvents(lines: Uint8Array): RecordEvents {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  return withBounds(bytes, lineEndsOf(bytes), cursorInLine);
}

function withBounds(bytes: Buffer, ends: readonly number[], cursorAt: number): RecordEvents {
  const last = cursorFrom(bytes, (ends.at(-2) ?? 0) + cursorAt);
  return { bytes, ends, cursorAt, first: cursorFrom(bytes, cursorAt), last };
}

/** The cursor of the record with this index. */
export function cursorOf({ bytes, ends, cursorAt }: RecordEvents, index: number): string {
  return cursorFrom(bytes, startOf(ends, index) + cursorAt);
}

/** The bytes of the records from this index on, without a copy. */
export function eventsFrom({ bytes, ends }: RecordEvents, index: number): Buffer {
  return bytes.subarray(startOf(ends, index));
}

function startOf(ends: readonly number[], index: number): number {
  return index === 0 ? 0 : ends[index - 1]!;
}

function cursorFrom(bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at, at + cursorBytes(bytes, at));
}

/** Length of the cursor at an offset. A quote or the end of a line follows it. */
function cursorBytes(bytes: Buffer, at: number): number {
  let end = at + cursorDigits;
  while (end < bytes.length && bytes[end] !== quote && bytes[end] !== newline) end++;
  return end - at;
}

/** One entry of a group's log: events that a reading has found, or the mark that ends the reading. */
export interface LogEntry {
  /** Number of the reading in its group, from 1; 0 for events that no reading of the group has found. */
  readonly reading: number;
  /** null marks the end of the reading. */
  readonly events: RecordEvents | null;
}

/** Bytes of events that the logs of all groups hold together. */
export interface LogBudget {
  bytes: number;
}

/** The memory that the logs of all groups share. */
export interface LogRoom {
  readonly budget: LogBudget;
  /** Frees memory if the logs hold more than `followLogsBytesMax` together. */
  readonly check: () => void;
}

/**
 * The events that a group's readings have found. An entry is kept until every follower of the group has taken it, or until it is dropped to
 * free memory. Indexes of entries start at 0 and are never reused.
 */
export class EventLog {
  #entries: LogEntry[] = [];
  #first = 0;
  #bytes = 0;

  constructor(private readonly budget: LogBudget) {}

  /** Index of the oldest entry that is kept. */
  get first(): number {
    return this.#first;
  }

  /** Index that the next entry gets. */
  get end(): number {
    return this.#first + this.#entries.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(entry: LogEntry): void {
    this.#entries.push(entry);
    this.#count(entry.events?.bytes.length ?? 0);
  }

  /** The entry with this index, which must still be kept (`first` ≤ index < `end`). */
  at(index: number): LogEntry {
    return this.#entries[index - this.#first]!;
  }

  /** Drops all entries with an index below `end`. */
  dropBefore(end: number): void {
    const dropped = this.#entries.splice(0, end - this.#first);
    this.#first += dropped.length;
    for (const { events } of dropped) this.#count(-(events?.bytes.length ?? 0));
  }

  /** Drops the oldest entries until the log holds at most `bytes`. */
  shrink(bytes: number): void {
    let end = this.#first;
    for (let left = this.#bytes; left > bytes; end++) left -= this.at(end).events?.bytes.length ?? 0;
    this.dropBefore(end);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.budget.bytes += bytes;
  }
}
