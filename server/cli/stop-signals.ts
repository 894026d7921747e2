import { constants } from 'node:os';

/**
 * SIGINT and SIGTERM for one command: the first one asks it to stop (through `signal`), a second one ends the process at
 * once. A command that was stopped ends with 130 or 143, as a shell expects.
 */
export class StopSignals {
  readonly #controller = new AbortController();
  #received: 'SIGINT' | 'SIGTERM' | undefined;
  #obeyed = false;
  readonly #onInterrupt = (): void => this.#receive('SIGINT');
  readonly #onTerminate = (): void => this.#receive('SIGTERM');

  constructor() {
    process.on('SIGINT', this.#onInterrupt);
    process.on('SIGTERM', this.#onTerminate);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The signal that was received, if any. */
  get received(): 'SIGINT' | 'SIGTERM' | undefined {
    return this.#received;
  }

  /** For commands that run until they are told to stop: stopping was what they were for, so it is no failure. */
  obeyed(): void {
    this.#obeyed = true;
  }

  /** Exit code of a process that a signal ended early; undefined when none did. */
  get exitCode(): number | undefined {
    return this.#received === undefined || this.#obeyed ? undefined : 128 + constants.signals[this.#received];
  }

  /** Stops listening, so that signals end the process as usual. */
  release(): void {
    process.off('SIGINT', this.#onInterrupt);
    process.off('SIGTERM', this.#onTerminate);
  }

  #receive(name: 'SIGINT' | 'SIGTERM'): void {
    if (this.#received !== undefined) process.exit(128 + constants.signals[name]);
    this.#received = name;
    this.#controller.abort();
  }
}
