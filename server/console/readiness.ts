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

  /** Everything that keeps it from being ready; empty where it is. */
  async troubles(): Promise<readonly Trouble[]> {
    if (this.#isStopping) return [{ reason: 'the server is shutting down' }];
    return this.#troubles?.() ?? [{ reason: 'the archive is being opened' }];
  }
}
