import type { Slot } from './admission.js';
import type { WatchedAnswer } from './answer-watch.js';
import type { ResponseHead, TransportResponse } from '../http/transport.js';

/** A streamed answer whose scan gives its slot back while a write waits for the client, and takes one again afterwards. */
export class PacedResponse {
  readonly watched: WatchedAnswer;
  readonly #response: TransportResponse;
  readonly #slot: Slot;

  constructor(response: TransportResponse, slot: Slot, watched: WatchedAnswer) {
    this.#response = response;
    this.#slot = slot;
    this.watched = watched;
  }

  get isGone(): boolean {
    return this.#response.isGone;
  }

  /** Like `TransportResponse.write`, but the promise resolves only when the client keeps pace and the scan has a slot again. */
  async write(head: ResponseHead, piece: Uint8Array): Promise<void> {
    const writing = this.#response.write(head, piece);
    const { isWaiting } = this.#response;
    if (isWaiting) {
      this.watched.waits(piece.length, performance.now());
      this.#slot.leave();
    }
    await writing;
    this.watched.took(piece.length, performance.now());
    if (isWaiting) await this.#slot.enter();
  }

  end(): void {
    this.#response.end();
  }

  break(): void {
    this.#response.break();
  }
}
