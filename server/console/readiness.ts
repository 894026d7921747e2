import type { Trouble } from '../../engine/index.js';

/** Whether a server can answer for, and store, all that it should. */
export class Readiness {
  /** Undefined until the archive is open. */
  #troubles: (() => Promise<readonly Trouble[]>) | undefined;
  #isStopping = false;

  /** The archive is open; from now on it is asked what is wrong with it. */
  open(troubles: () => Promise<readonly Trouble[]>): void {
    this.#troubles = troubles;
  }

  /** The server was told to stop. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Why it is not ready yet, or no more, which tells nothing of what it holds; null in between. */
  get passing(): string | null {
    if (this.#isStopping) return 'the server is shutting down';
    return this.#troubles === undefined ? 'the archive is being opened' : null;
  }

  /** Everything that keeps it from being ready; empty where it is. */
  async troubles(): Promise<readonly Trouble[]> {
    const { passing } = this;
    return passing === null ? this.#troubles!() : [{ reason: passing }];
  }
}
