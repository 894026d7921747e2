import { StreamSocket } from './stream-socket.js';

/** Called with each record: when its line was written and when it came, in milliseconds since the epoch. */
export type OnRecord = (sentMs: number, nowMs: number) => void;

const reconnectMs = 100;

const newline = 10;
/** An event of a record is `id: ` and a cursor, then `data: ` and a line of JSON. */
const idBegin = 'i'.charCodeAt(0);
const idHead = 'id: '.length;
const cursorDigits = 16;
const dataBegin = idHead + cursorDigits + 1;
const zero = '0'.charCodeAt(0);
const nine = '9'.charCodeAt(0);

/** Finds an integer after a mark in an event. Every event of a record has it, and most have it at the same offset. */
class MarkedNumber {
  readonly #mark: Buffer;
  #place = 0;

  constructor(mark: string) {
    this.#mark = Buffer.from(mark);
  }

  /** Reads the integer from the event in [from, end). */
  read(bytes: Buffer, from: number, end: number): number {
    if (!this.#isAt(bytes, from + this.#place)) {
      const found = bytes.indexOf(this.#mark, from);
      if (found < 0 || found >= end) throw new Error(`an event has no ${this.#mark.toString()}`);
      this.#place = found - from;
    }
    let value = 0;
    for (let at = from + this.#place + this.#mark.length; bytes[at]! >= zero && bytes[at]! <= nine; at++)
      value = value * 10 + bytes[at]! - zero;
    return value;
  }

  #isAt(bytes: Buffer, at: number): boolean {
    for (let i = 0; i < this.#mark.length; i++) if (bytes[at + i] !== this.#mark[i]) return false;
    return true;
  }
}

/** The end of another event: behind the first empty line. Infinity if it has not come yet. */
function endOfOther(bytes: Buffer, from: number, end: number): number {
  const found = from < end ? bytes.indexOf('\n\n', from) : -1;
  return found < 0 ? Infinity : found + 2;
}

/**
 * A client that follows a stream of records numbered 0, `step`, 2 · `step`, …, and reconnects with the last id whenever the stream ends. It
 * counts errors in the sequence: numbers that it had received already are repeated, skipped ones are lost.
 */
export class StreamClient {
  /** The number that is expected next. */
  next = 0;
  lost = 0;
  repeated = 0;
  connections = 0;
  readonly named = new Map<string, number>();
  readonly #n = new MarkedNumber('"n":');
  readonly #sent = new MarkedNumber('"sent":');
  /** Length of the last event of a record whose end was searched for. */
  #recordBytes = dataBegin;
  #lastId = '0000000000000000';
  #socket: StreamSocket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(
    private readonly url: URL,
    private readonly step: number,
    private readonly onRecord: OnRecord,
  ) {
    this.#connect();
  }

  /** Breaks the connection, as happens to real clients. */
  breakOff(): void {
    this.#socket?.destroy();
  }

  /** Stops the client for good. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
  }

  #connect(): void {
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': this.#lastId };
    this.#socket = new StreamSocket(this.url, headers, {
      begin: () => this.connections++,
      take: (bytes, from, end) => this.#takeWhole(bytes, from, end),
      over: () => {
        if (!this.#isOver) this.#timer = setTimeout(() => this.#connect(), reconnectMs);
      },
    });
  }

  /** Takes all events that are complete. Returns the offset at which the next one begins. */
  #takeWhole(bytes: Buffer, start: number, end: number): number {
    const nowMs = Date.now();
    let from = start;
    let last = -1;
    for (;;) {
      const isRecord = bytes[from] === idBegin;
      const to = isRecord ? this.#endOfRecord(bytes, from, end) : endOfOther(bytes, from, end);
      if (to > end) break;
      if (isRecord) {
        this.#takeRecord(bytes, from, to, nowMs);
        last = from;
      } else this.#takeOther(bytes.toString('utf8', from, to));
      from = to;
    }
    // The id is only needed to reconnect, so only the last one is decoded.
    if (last >= 0) this.#lastId = bytes.toString('latin1', last + idHead, last + idHead + cursorDigits);
    return from;
  }

  /**
   * The end of the event of a record: behind the first empty line, which most records have at the same offset. A record has no empty line in
   * it, and is longer than half of another one, so an empty line there is the end of this record. Infinity if it has not come yet.
   */
  #endOfRecord(bytes: Buffer, from: number, end: number): number {
    const usual = from + this.#recordBytes;
    if (usual <= end && bytes[usual - 1] === newline && bytes[usual - 2] === newline) return usual;
    const lineEnd = bytes.indexOf(newline, from + dataBegin);
    const to = lineEnd < 0 ? Infinity : lineEnd + 2;
    if (to <= end) this.#recordBytes = to - from;
    return to;
  }

  #takeOther(text: string): void {
    const name = /^event: (\w+)/.exec(text)?.[1];
    if (name !== undefined) this.named.set(name, (this.named.get(name) ?? 0) + 1);
  }

  /** Searches for the numbers instead of parsing JSON, as the clients are not to be measured. */
  #takeRecord(bytes: Buffer, from: number, end: number, nowMs: number): void {
    const n = this.#n.read(bytes, from, end);
    const sent = this.#sent.read(bytes, from, end);
    if (n < this.next) this.repeated++;
    else this.lost += (n - this.next) / this.step;
    this.next = n + this.step;
    this.onRecord(sent, nowMs);
  }
}
