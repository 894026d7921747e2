import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { fileSystemError, hasSystemCode } from '../../../engine/index.js';
import { printable } from './text-width.js';

const screenWidthDefault = 80;

/** Standard output was closed by its reader (`| head`), or with its terminal: nobody waits for the rest, and that is no failure. */
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
      else if (hasSystemCode(error, 'EPIPE') || isTerminalGone(error)) reject(new OutputClosedError());
      else reject(fileSystemError(error, 'write', 'standard output') as Error);
    });
  });
}

/**
 * Writes whole lines that hold texts of logs: on a terminal without what it would act on, as `\u001b`, which in JSON is the same text. A pipe
 * gets the bytes as they are.
 */
export function writeRecords(piece: Uint8Array): Promise<void> {
  if (!process.stdout.isTTY) return writeOut(piece);
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('utf8');
  return writeOut(text.replaceAll(/[^\r\n]+/g, printable));
}

/** Columns of the terminal that standard output is; null where it is none. */
export function screenWidth(): number | null {
  // A terminal that does not know has no columns.
  return process.stdout.isTTY ? process.stdout.columns || screenWidthDefault : null;
}

/** What a terminal says that was closed. */
function isTerminalGone(error: unknown): boolean {
  return process.stdout.isTTY && hasSystemCode(error, 'EIO');
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
export function handleClosedOutput(): void {
  // A failed write is reported by the callback in `writeOut`.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const terminals = [0, 1, 2].filter((handle) => isatty(handle));
  process.on('exit', () => leaveTerminals(terminals));
}

/** Node gives terminals their settings back when it ends, and where one was closed meanwhile it aborts: those are let go before. */
function leaveTerminals(handles: readonly number[]): void {
  for (const handle of handles) if (!isatty(handle)) closeSync(handle);
}
