import { clientGoneError, type ResponseHead, type TransportResponse } from '../../server/http/transport.js';

/** One event of a stream. */
export interface StreamEvent {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

/** Reads an event stream by the rules of the HTML standard, as far as these streams use them. */
export class EventReader {
  readonly events: StreamEvent[] = [];
  comments = 0;
  #rest = '';

  feed(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop()!;
    for (const block of blocks) this.#read(block);
  }

  /** Whether no event is incomplete. */
  get isWhole(): boolean {
    return this.#rest === '';
  }

  #read(block: string): void {
    let name = 'message';
    let id: string | undefined;
    let data: string | undefined;
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      const value = line.slice(colon + 1).replace(/^ /, '');
      if (colon === 0) this.comments++;
      else if (line.startsWith('event:')) name = value;
      else if (line.startsWith('id:')) id = value;
      else if (line.startsWith('data:')) data = value;
      else if (!line.startsWith('retry:')) throw new Error(`a line of a stream: ${line}`);
    }
    if (data !== undefined) this.events.push({ name, id, data: JSON.parse(data) as StreamEvent['data'] });
  }
}

/** The client's side of an answer. It takes data at once, or stops taking it for a while. */
export class ClientDouble implements TransportResponse {
  readonly reader = new EventReader();
  isGone = false;
  isEnded = false;
  isBroken = false;
  head: ResponseHead | undefined;
  /** Bytes that were written to it and that it has not taken. */
  waitingBytes = 0;
  #isStopped = false;
  #written: string[] = [];
  #goOn: { resolve(): void; reject(error: Error): void } | undefined;
  #whenGone: (() => void) | undefined;

  whenGone(call: () => void): void {
    this.#whenGone = call;
  }

  get isWaiting(): boolean {
    return this.#goOn !== undefined;
  }

  send(): never {
    throw new Error('a stream is written piece by piece');
  }

  write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    if (this.#goOn !== undefined) throw new Error('one piece is written after another');
    if (this.isGone || this.isEnded) return Promise.reject(clientGoneError());
    this.head = head;
    if (!this.#isStopped) {
      this.reader.feed(Buffer.from(piece).toString());
      return Promise.resolve();
    }
    this.waitingBytes = piece.length;
    this.#written.push(Buffer.from(piece).toString());
    return new Promise((resolve, reject) => (this.#goOn = { resolve, reject }));
  }

  end(): void {
    this.isEnded = true;
  }

  break(): void {
    this.isBroken = true;
    this.leave();
  }

  /** Takes no more data from now on. */
  stop(): void {
    this.#isStopped = true;
  }

  goOn(): void {
    this.#isStopped = false;
    for (const text of this.#written.splice(0)) this.reader.feed(text);
    this.waitingBytes = 0;
    const waiter = this.#goOn;
    this.#goOn = undefined;
    waiter?.resolve();
  }

  leave(): void {
    if (this.isGone || this.isEnded) return;
    this.isGone = true;
    const waiter = this.#goOn;
    this.#goOn = undefined;
    waiter?.reject(clientGoneError());
    this.#whenGone?.();
  }

  /** The ids of records, in the order of their arrival. */
  get ids(): string[] {
    return this.reader.events.flatMap(({ name, id }) => (name === 'message' ? [id!] : []));
  }

  /** Events other than records. */
  named(name: string): StreamEvent[] {
    return this.reader.events.filter((event) => event.name === name);
  }
}
