import { constants } from 'node:os';

/** The signals that ask a command to stop. SIGHUP, which is sent when the terminal is closed, is one unless the command uses it otherwise. */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/**
 * The handlers of the signals that stop a command. The first signal asks the command to stop (through `signal`); a second one ends the
 * process at once. A stopped command exits with 128 plus the number of the signal (130 for SIGINT), as is usual in shells.
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

  /** Aborts at the first signal. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The signal that was received, if any. */
  get received(): StopSignal | undefined {
    return this.#received;
  }

  /** Makes a stop count as success. Commands that run until they are stopped call this. */
  obeyed(): void {
    this.#obeyed = true;
  }

  /** The exit code of a command that a signal has interrupted; undefined where none has. */
  get exitCode(): number | undefined {
    return this.#received === undefined || this.#obeyed ? undefined : 128 + constants.signals[this.#received];
  }

  /** Removes the handlers, so that signals end the process as usual. */
  release(): void {
    for (const name of this.#names) process.off(name, this.#receive);
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.#received !== undefined) process.exit(128 + constants.signals[name]);
    this.#received = name as StopSignal;
    this.#controller.abort();
  };
}
