import { request, type ClientRequest, type IncomingMessage } from 'node:http';

/** A record that was received. */
export interface FollowedRecord {
  readonly n: number;
  /** When its line was written, in milliseconds since the epoch. */
  readonly sent: number;
}

const reconnectMs = 100;

const none = Buffer.alloc(0);
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
  #lastId = '0000000000000000';
  #request: ClientRequest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(
    private readonly url: string,
    private readonly step: number,
    private readonly onRecord: (record: FollowedRecord) => void,
  ) {
    this.#connect();
  }

  /** Breaks the connection, as happens to real clients. */
  breakOff(): void {
    this.#request?.destroy();
  }

  /** Stops the client for good. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#request?.destroy();
  }

  #connect(): void {
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': this.#lastId };
    const asked = request(this.url, { headers, agent: false });
    this.#request = asked;
    let isOver = false;
    const again = (): void => {
      if (isOver || this.#isOver) return;
      isOver = true;
      this.#timer = setTimeout(() => this.#connect(), reconnectMs);
    };
    asked.on('error', again);
    asked.on('response', (response) => {
      if (response.statusCode === 200) this.#read(response);
      else response.resume();
      response.on('error', again);
      response.on('close', again);
    });
    asked.end();
  }

  #read(response: IncomingMessage): void {
    this.connections++;
    let rest: Buffer = none;
    response.on('data', (piece: Buffer) => {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      rest = bytes.subarray(this.#takeWhole(bytes));
    });
  }

  /** Takes all events that are complete. Returns the offset at which the next one begins. */
  #takeWhole(bytes: Buffer): number {
    let from = 0;
    let last = -1;
    for (;;) {
      const isRecord = bytes[from] === idBegin;
      // An event of a record ends at the first line end after its id, any other one at the first empty line.
      const lineEnd = isRecord ? bytes.indexOf(newline, from + dataBegin) : bytes.indexOf('\n\n', from);
      const end = lineEnd < 0 ? bytes.length : lineEnd + 2;
      if (lineEnd < 0 || end > bytes.length) break;
      if (isRecord) {
        this.#takeRecord(bytes, from, end);
        last = from;
      } else this.#takeOther(bytes.toString('utf8', from, end));
      from = end;
    }
    // The id is only needed to reconnect, so only the last one is decoded.
    if (last >= 0) this.#lastId = bytes.toString('latin1', last + idHead, last + idHead + cursorDigits);
    return from;
  }

  #takeOther(text: string): void {
    const name = /^event: (\w+)/.exec(text)?.[1];
    if (name !== undefined) this.named.set(name, (this.named.get(name) ?? 0) + 1);
  }

  /** Searches for the numbers instead of parsing JSON, as the clients are not to be measured. */
  #takeRecord(bytes: Buffer, from: number, end: number): void {
    const n = this.#n.read(bytes, from, end);
    const sent = this.#sent.read(bytes, from, end);
    if (n < this.next) this.repeated++;
    else this.lost += (n - this.next) / this.step;
    this.next = n + this.step;
    this.onRecord({ n, sent });
  }
}
