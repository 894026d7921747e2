import { fileSystemError, hasSystemCode } from '../../engine/storage/file-system-error.js';

/** Standard output was closed by its reader (`| head`): nobody waits for the rest, and that is no failure. */
export class OutputClosedError extends Error {
  constructor() {
    super('standard output was closed');
    this.name = 'OutputClosedError';
  }
}

/**
 * Writes to standard output and waits until the system has taken it, so that a slow reader slows us down.
 * Throws `OutputClosedError` when the reader has gone.
 */
export function writeOut(piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(piece, (error) => {
      if (error === undefined || error === null) resolve();
      else if (hasSystemCode(error, 'EPIPE')) reject(new OutputClosedError());
      else reject(fileSystemError(error, 'write', 'standard output') as Error);
    });
  });
}

/** Writes one answer of a command as lines. */
export async function printLines(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await writeOut(`${lines.join('\n')}\n`);
}

/** Writes one answer of a command as one line of JSON, for scripts. 64-bit integers are written with every digit, as text. */
export async function printJson(value: unknown): Promise<void> {
  const text = JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'bigint' ? part.toString() : part,
  );
  await writeOut(`${text}\n`);
}

/** Tells people something beside the answer: on standard error, so that a pipe carries the answer alone. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Must be called once at the start: without a listener a closed pipe would end the process with a stack trace. */
export function guardOutput(): void {
  // Failed writes are reported to whoever wrote, through the callback in `writeOut`.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}
