import type { Trouble } from '../../engine/index.js';

/** Whether the server can answer queries and store records as it should. */
export class Readiness {
  /** Undefined until the archive is open. */
  #troubles: (() => Promise<readonly Trouble[]>) | undefined;
  #isStopping = false;

  /** Says that the archive is open. From now on `troubles` is asked what is wrong with it. */
  open(troubles: () => Promise<readonly Trouble[]>): void {
    this.#troubles = troubles;
  }

  /** Says that the server is stopping. */
  stop(): void {
    this.#isStopping = true;
  }

  /** The reason where the server is starting or stopping; else null. It reveals nothing about the archive, so everybody may see it. */
  get transition(): string | null {
    if (this.#isStopping) return 'the server is shutting down';
    return this.#troubles === undefined ? 'the archive is being opened' : null;
  }

  /** Everything that keeps the server from being ready; empty where it is ready. */
  async troubles(): Promise<readonly Trouble[]> {
    const { transition } = this;
    return transition === null ? this.#troubles!() : [{ reason: transition }];
  }
}
