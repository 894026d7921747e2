import { request, type ClientRequest, type IncomingMessage } from 'node:http';

/** A record that was followed. */
export interface FollowedRecord {
  readonly n: number;
  /** When its line was written, ms since the epoch. */
  readonly sent: number;
}

const reconnectMs = 100;

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
    let rest = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      rest += text;
      let from = 0;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n', from)) {
        this.#take(rest.slice(from, end));
        from = end + 2;
      }
      rest = rest.slice(from);
    });
  }

  #take(event: string): void {
    if (!event.startsWith('id: ')) {
      const name = /^event: (\w+)/.exec(event)?.[1];
      if (name !== undefined) this.named.set(name, (this.named.get(name) ?? 0) + 1);
      return;
    }
    const line = event.indexOf('\ndata: ');
    const record = JSON.parse(event.slice(line + '\ndata: '.length)) as FollowedRecord;
    this.#lastId = event.slice('id: '.length, line);
    if (record.n < this.next) this.repeated++;
    else this.lost += (record.n - this.next) / this.step;
    this.next = record.n + this.step;
    this.onRecord(record);
  }
}
