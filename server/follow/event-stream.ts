import { followCommentMs, followFarewellMs, followRetryMs } from '../http/http-limits.js';
import type { ResponseHead, TransportResponse } from '../http/transport.js';
import type { WatchedAnswer } from '../pace/answer-watch.js';

const ignore = (): void => undefined;
const comment = Buffer.from(':\n\n');
const beginning = Buffer.from(`retry: ${followRetryMs}\n\n`);

/** An event that is no record: it has no id, so that the client goes on by the one that it had last. */
export function eventText(name: string, data: object): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** One stream of events to a client, written one piece after another. */
export class EventStream {
  readonly #response: TransportResponse;
  readonly #head: ResponseHead;
  readonly #watched: WatchedAnswer;
  /** The write that the client has not taken. */
  #writing: Promise<void> | undefined;
  /** When something was written last. */
  #lastMs = performance.now();
  #isEnded = false;
  /** Called when the client has taken what was written last, where that took a while. */
  onFree: () => void = ignore;

  constructor(response: TransportResponse, head: ResponseHead, watched: WatchedAnswer) {
    this.#response = response;
    this.#head = head;
    this.#watched = watched;
  }

  /** The client has not taken what was written last. */
  get isWriting(): boolean {
    return this.#writing !== undefined;
  }

  /** Sends the head, and how long to wait before a connection is made again. */
  begin(): void {
    this.write(beginning)?.catch(ignore);
  }

  /** Undefined where the client keeps pace; else what resolves when it has taken the bytes. Rejects when it has gone. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#writing !== undefined) return this.#writing.then(() => this.write(bytes));
    if (this.#isEnded) return undefined;
    this.#lastMs = performance.now();
    const writing = this.#response.write(this.#head, bytes);
    if (writing === undefined) {
      this.#watched.took(bytes.length, this.#lastMs);
      return undefined;
    }
    this.#watched.waits(bytes.length, this.#lastMs);
    this.#writing = writing.then(() => {
      this.#writing = undefined;
      this.#watched.took(bytes.length, performance.now());
      this.onFree();
    });
    return this.#writing;
  }

  /** Sends a comment where nothing was sent for a while. A client that has not taken the last piece hears enough. */
  comment(nowMs: number): void {
    const silenceMs = Math.min(followCommentMs, this.#response.silenceMsMax);
    if (this.isWriting || nowMs - this.#lastMs < silenceMs) return;
    this.write(comment)?.catch(ignore);
  }

  /** Ends the stream behind what is being written, with a last event. A client that does not take it is cut off. */
  end(farewell: Buffer | null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#watched.end();
    if (this.#writing === undefined) {
      this.#finish(farewell);
      return;
    }
    const timer = setTimeout(() => this.#response.break(), followFarewellMs).unref();
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
    if (farewell !== null) this.#response.write(this.#head, farewell)?.catch(ignore);
    this.#response.end();
  }
}
