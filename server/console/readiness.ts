/** Why a server is not ready: by agent, or on the whole. */
export interface NotReady {
  /** Undefined where the reason is not one agent's. */
  readonly agent?: string;
  readonly reason: string;
}

/** Whether a server can answer for all that it should. */
export class Readiness {
  #state: 'opening' | 'open' | 'stopping' = 'opening';

  /** The archive is open. */
  open(): void {
    this.#state = 'open';
  }

  /** The server was told to stop. */
  stop(): void {
    this.#state = 'stopping';
  }

  /** Everything that keeps it from being ready; empty where it is. */
  reasons(): readonly NotReady[] {
    switch (this.#state) {
      case 'opening':
        return [{ reason: 'the archive is being opened' }];
      case 'open':
        return [];
      case 'stopping':
        return [{ reason: 'the server is shutting down' }];
    }
  }
}
