import { StopSignals } from './stop-signals.js';

/**
 * Runs a command that SIGINT and SIGTERM can stop in good order, and sets the exit code of the process. Once a signal
 * came, a failure is what stopping looks like, unless `run` handles it: the exit code is then that of the signal.
 */
export async function runStoppable(run: (signals: StopSignals) => Promise<number>): Promise<void> {
  const signals = new StopSignals();
  try {
    const code = await run(signals);
    process.exitCode = signals.exitCode ?? code;
  } catch (error) {
    if (signals.exitCode === undefined || !isCancellation(error)) throw error;
    process.exitCode = signals.exitCode;
  } finally {
    signals.release();
  }
}

function isCancellation(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === 'AbortError' || (error as { code?: unknown }).code === 'cancelled')
  );
}
