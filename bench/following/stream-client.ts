import { request, type ClientRequest, type IncomingMessage } from 'node:http';

/** A record that was followed. */
export interface FollowedRecord {
  readonly n: number;
  /** When its line was written, ms since the epoch. */
  readonly sent: number;
}

const reconnectMs = 100;

const none = Buffer.alloc(0);
const eventEnd = Buffer.from('\n\n');
const nMark = Buffer.from('"n":');
const sentMark = Buffer.from('"sent":');
/** `id: ` and the cursor behind it. */
const idBegin = 'i'.charCodeAt(0);
const idHead = 'id: '.length;
const cursorDigits = 16;
const zero = '0'.charCodeAt(0);
const nine = '9'.charCodeAt(0);

/**
 * A client that follows a stream of records numbered 0, `step`, 2 · `step`, …, and connects again by its last id whenever the stream ends.
 * It counts what it was sent out of turn: numbers that it has passed are repeated, those between are lost.
 */
export class StreamClient {
  /** The number that comes next. */
  next = 0;
  lost = 0;
  repeated = 0;
  connections = 0;
  readonly named = new Map<string, number>();
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

  /** The connection breaks, as those of clients do. */
  breakOff(): void {
    this.#request?.destroy();
  }

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
      let from = 0;
      for (let end = bytes.indexOf(eventEnd); end >= 0; end = bytes.indexOf(eventEnd, from)) {
        this.#take(bytes, from, end);
        from = end + eventEnd.length;
      }
      rest = bytes.subarray(from);
    });
  }

  /** Takes the event in [from, end). Its numbers are sought and not parsed as JSON: the clients are not what is measured. */
  #take(bytes: Buffer, from: number, end: number): void {
    if (bytes[from] !== idBegin) {
      const name = /^event: (\w+)/.exec(bytes.toString('utf8', from, end))?.[1];
      if (name !== undefined) this.named.set(name, (this.named.get(name) ?? 0) + 1);
      return;
    }
    const n = numberBehind(bytes, nMark, from);
    const sent = numberBehind(bytes, sentMark, from);
    this.#lastId = bytes.toString('latin1', from + idHead, from + idHead + cursorDigits);
    if (n < this.next) this.repeated++;
    else this.lost += (n - this.next) / this.step;
    this.next = n + this.step;
    this.onRecord({ n, sent });
  }
}

/** The whole number behind a mark, which an event of a record always has. */
function numberBehind(bytes: Buffer, mark: Buffer, from: number): number {
  let at = bytes.indexOf(mark, from);
  if (at < 0) throw new Error(`an event has no ${mark.toString()}`);
  let value = 0;
  for (at += mark.length; bytes[at]! >= zero && bytes[at]! <= nine; at++)
    value = value * 10 + bytes[at]! - zero;
  return value;
}
