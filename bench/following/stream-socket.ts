import { connect, type Socket } from 'node:net';

/**
 * All sockets of the process read into the same memory, so that reading allocates nothing and costs no garbage collection. What a socket
 * has read is used up before the next one reads, except for a rest, which is put in front of what the socket reads next.
 */
const restBytesMax = 64 * 1024;
const space = Buffer.alloc(restBytesMax + 1024 * 1024);
const readSpace = space.subarray(restBytesMax);

const none = Buffer.alloc(0);
const newline = 10;

/** What a stream tells its reader. */
export interface StreamReader {
  /** Called when the head of a 200 has come. */
  begin(): void;
  /** Takes content from `from` to `end` of `bytes`, which is reused afterwards. Returns the offset from which on it is needed again. */
  take(bytes: Buffer, from: number, end: number): number;
  /** Called once, when the connection is over. */
  over(): void;
}

/** One GET request over HTTP/1.1 and its answer, which consists of chunks. */
export class StreamSocket {
  readonly #socket: Socket;
  readonly #reader: StreamReader;
  #hasHead = false;
  /** Bytes of the chunk that have not come yet, with the line end behind them; 0 where the length of a chunk comes next. */
  #left = 0;
  /** What has come of a head, or of the length of a chunk. */
  #text = '';
  /** Content that the reader could not use yet. */
  #rest: Buffer = none;

  constructor(url: URL, headers: Readonly<Record<string, string>>, reader: StreamReader) {
    this.#reader = reader;
    const onread = {
      buffer: readSpace,
      callback: (bytes: number): boolean => {
        this.#take(restBytesMax, restBytesMax + bytes);
        return true;
      },
    };
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true, onread });
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => reader.over());
    const lines = Object.entries({ Host: url.host, ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.#socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(start: number, end: number): void {
    let from = this.#hasHead ? start : this.#takeHead(start, end);
    while (from < end) {
      if (this.#left === 0) from = this.#takeLength(from, end);
      else {
        const to = Math.min(end, from + this.#left);
        // The line end behind a chunk is no content.
        this.#takeContent(from, Math.min(to, from + this.#left - 2));
        this.#left -= to - from;
        from = to;
      }
    }
  }

  /** Returns the offset behind the head, or `end` if more of it is to come. An answer other than 200 ends the connection. */
  #takeHead(from: number, end: number): number {
    const before = this.#text.length;
    this.#text += space.toString('latin1', from, end);
    const length = this.#text.indexOf('\r\n\r\n') + 4;
    if (length < 4) return end;
    const isGood = this.#text.startsWith('HTTP/1.1 200 ');
    this.#text = '';
    this.#hasHead = true;
    if (isGood) this.#reader.begin();
    else this.#socket.destroy();
    return isGood ? from + length - before : end;
  }

  /** Returns the offset behind the length of a chunk, or `end` if more of it is to come. A chunk of length 0 ends the answer. */
  #takeLength(from: number, end: number): number {
    const found = space.subarray(from, end).indexOf(newline);
    const to = found < 0 ? end : from + found + 1;
    this.#text += space.toString('latin1', from, to);
    if (found < 0) return end;
    const length = Number.parseInt(this.#text, 16);
    this.#text = '';
    if (!(length > 0)) {
      this.#socket.destroy();
      return end;
    }
    this.#left = length + 2;
    return to;
  }

  #takeContent(from: number, to: number): void {
    if (to <= from) return;
    const rest = this.#rest;
    // There is room for it: what was there has been used.
    const start = from - rest.length;
    rest.copy(space, start);
    const next = this.#reader.take(space, start, to);
    if (to - next > restBytesMax) throw new Error('an event is longer than is expected');
    this.#rest = next === to ? none : Buffer.from(space.subarray(next, to));
  }
}
