import { constants } from 'node:os';
import type { Command } from 'commander';
import { OutputClosedError } from './terminal.js';

/** The signals that ask a command to stop. SIGHUP, which is sent when the terminal is closed, is one unless the command uses it otherwise. */
type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

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

/**
 * Makes an action for Commander from a command that signals can stop, whose code `load` loads. The command gets the flags (its own and the
 * program's), its arguments and the signals, and returns the exit code. A failure that stopping causes (`isEnd`) is not reported; the exit code
 * is then that of the signal.
 */
export function stoppable<Words extends unknown[]>(
  load: () => Promise<(flags: never, signals: StopSignals, ...words: Words) => Promise<number>>,
  names?: readonly StopSignal[],
): (...given: unknown[]) => Promise<void> {
  return runs(async () => {
    const run = await load();
    return async (flags: never, ...words: Words) => {
      const signals = new StopSignals(names);
      try {
        const code = await run(flags, signals, ...words);
        return signals.exitCode ?? code;
      } catch (error) {
        if (signals.exitCode === undefined || !isEnd(error)) throw error;
        return signals.exitCode;
      } finally {
        signals.release();
      }
    };
  });
}

/** Makes an action for Commander from a command that signals end at once, like `stoppable`. */
export function runs<Words extends unknown[]>(
  load: () => Promise<(flags: never, ...words: Words) => Promise<number>>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const run = await load();
    const command = given.at(-1) as Command;
    process.exitCode = await run(command.optsWithGlobals() as never, ...(given.slice(0, -2) as Words));
  };
}

/** Whether an error is the result of stopping. A signal to a whole pipeline also ends the process that reads our output. */
function isEnd(error: unknown): boolean {
  return (
    error instanceof OutputClosedError ||
    (error instanceof Error &&
      (error.name === 'AbortError' || (error as { code?: unknown }).code === 'cancelled'))
  );
}
