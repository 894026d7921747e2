import { constants } from 'node:os';

/** A signal that asks a command to stop. SIGHUP is one unless it has another meaning: the terminal was closed. */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/**
 * The signals that stop one command: the first one asks it to stop (through `signal`), a second one ends the process at
 * once. A command that was stopped ends with 128 and the number of the signal (130 for SIGINT), as a shell expects.
 */
export class StopSignals {
  readonly #controller = new AbortController();
  readonly #names: readonly StopSignal[];
  #received: StopSignal | undefined;
  #obeyed = false;

  constructor(names: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    this.#names = names;
    for (const name of names) process.on(name, this.#receive);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The signal that was received, if any. */
  get received(): StopSignal | undefined {
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
    for (const name of this.#names) process.off(name, this.#receive);
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.#received !== undefined) process.exit(128 + constants.signals[name]);
    this.#received = name as StopSignal;
    this.#controller.abort();
  };
}
