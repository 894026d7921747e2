import type { Command } from 'commander';
import { StopSignals, type StopSignal } from './stop-signals.js';
import { OutputClosedError } from '../output/terminal.js';

/**
 * Runs a command that signals can stop in good order, and sets the exit code of the process. Once a signal came, a
 * failure is what stopping looks like, unless `run` handles it: the exit code is then that of the signal.
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
 * The action of a command that signals can stop, as Commander takes it: `run` is given the flags, its own and the program's, the signals,
 * and then the arguments.
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

/** What stopping looks like; where a signal ends a whole pipeline, the reader of our output is gone as well. */
function isEnd(error: unknown): boolean {
  return (
    error instanceof OutputClosedError ||
    (error instanceof Error &&
      (error.name === 'AbortError' || (error as { code?: unknown }).code === 'cancelled'))
  );
}
