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
  readonly #response: TransportResponse;
  readonly #head: ResponseHead;
  readonly #watched: WatchedAnswer;
  /** The last write, which the client has not taken yet while `isWriting`. */
  #writing = done;
  #isWriting = false;
  /** Time of the last write, by `performance.now()`. */
  #lastMs = performance.now();
  #isEnded = false;
  /** Called when a write that had to wait for the client is complete, so that more can be written. */
  onFree: () => void = ignore;

  constructor(response: TransportResponse, head: ResponseHead, watched: WatchedAnswer) {
    this.#response = response;
    this.#head = head;
    this.#watched = watched;
  }

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
    const writing = this.#response.write(this.#head, bytes);
    if (!this.#response.isWaiting) {
      this.#watched.took(bytes.length, this.#lastMs);
      return writing;
    }
    this.#isWriting = true;
    this.#watched.waits(bytes.length, this.#lastMs);
    this.#writing = writing.then(() => {
      this.#isWriting = false;
      this.#watched.took(bytes.length, performance.now());
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
    this.#watched.end();
    if (!this.#isWriting) {
      this.#finish(farewell);
      return;
    }
    const timer = setTimeout(() => this.#response.break(), farewellMs).unref();
    this.#writing.then(
      () => {
        clearTimeout(timer);
        this.#finish(farewell);
      },
      () => clearTimeout(timer),
    );
  }

  #finish(farewell: Buffer | null): void {
    if (this.#response.isGone) return;
    if (farewell !== null) this.#response.write(this.#head, farewell).catch(ignore);
    this.#response.end();
  }
}
