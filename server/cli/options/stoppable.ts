import type { Command } from 'commander';
import { StopSignals, type StopSignal } from './stop-signals.js';
import { OutputClosedError } from '../output/terminal.js';

/**
 * Runs a command that signals can stop, and sets the exit code of the process. A failure that stopping causes (`isEnd`) is not reported;
 * the exit code is then that of the signal.
 */
async function runStoppable(
  run: (signals: StopSignals) => Promise<number>,
  names?: readonly StopSignal[],
): Promise<void> {
  const signals = new StopSignals(names);
  try {
    const code = await run(signals);
    process.exitCode = signals.exitCode ?? code;
  } catch (error) {
    if (signals.exitCode === undefined || !isEnd(error)) throw error;
    process.exitCode = signals.exitCode;
  } finally {
    signals.release();
  }
}

/**
 * Makes an action for Commander from a command that signals can stop. `run` gets the flags (the command's and the program's), the signals,
 * and then the arguments of the command. It returns the exit code.
 */
export function stoppable<Flags, Words extends unknown[]>(
  run: (flags: Flags, signals: StopSignals, ...words: Words) => Promise<number>,
  names?: readonly StopSignal[],
): (...given: unknown[]) => Promise<void> {
  return (...given) => {
    const command = given.at(-1) as Command;
    const words = given.slice(0, -2) as Words;
    return runStoppable((signals) => run(command.optsWithGlobals() as Flags, signals, ...words), names);
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
