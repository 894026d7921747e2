import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { fileSystemError, hasSystemCode } from '../../../engine/index.js';
import { printable, printableLines } from './text-width.js';

const screenWidthDefault = 80;

/** Standard output was closed by its reader (`| head`) or with its terminal. The rest of the output is not needed, so this is not a failure. */
export class OutputClosedError extends Error {
  constructor() {
    super('standard output was closed');
    this.name = 'OutputClosedError';
  }
}

/**
 * Writes to standard output and waits until the system has accepted the data (back-pressure of a slow reader). Throws `OutputClosedError`
 * where the reader has closed its end.
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
 * Writes whole lines that contain texts of logs. On a terminal control characters are escaped as `\u001b`, which keeps JSON equivalent.
 * Otherwise the bytes are written unchanged.
 */
export function writeRecords(piece: Uint8Array): Promise<void> {
  if (!process.stdout.isTTY) return writeOut(piece);
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('utf8');
  return writeOut(printableLines(text));
}

/** Columns of the terminal that standard output is connected to; null where it is not a terminal. */
export function screenWidth(): number | null {
  // `columns` is 0 or undefined for a terminal that does not know its size.
  return process.stdout.isTTY ? process.stdout.columns || screenWidthDefault : null;
}

/** Whether a write failed because the terminal was closed. */
function isTerminalGone(error: unknown): boolean {
  return process.stdout.isTTY && hasSystemCode(error, 'EIO');
}

/**
 * Writes the output of a command as lines. Control characters are escaped: lines contain names of files, fields and the like, which
 * somebody else may have chosen.
 */
export async function printLines(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await writeOut(`${lines.map(printable).join('\n')}\n`);
}

/** Writes the output of a command as one line of JSON. 64-bit integers become strings with all digits. */
export async function printJson(value: unknown): Promise<void> {
  const text = JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'bigint' ? part.toString() : part,
  );
  await writeOut(`${printable(text)}\n`);
}

/**
 * Writes a message to people on standard error, so that standard output has only the output of the command. Control characters are
 * escaped as by `printLines`.
 */
export function tell(line: string): void {
  process.stderr.write(`${printable(line)}\n`);
}

/**
 * Handles errors of the standard streams. Must be called once at the start: without a listener a closed pipe would end the process with a
 * stack trace.
 */
export function handleClosedOutput(): void {
  // A failed write is reported by the callback in `writeOut`.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const terminals = [0, 1, 2].filter((handle) => isatty(handle));
  process.on('exit', () => leaveTerminals(terminals));
}

/** Closes the terminals that are gone. On exit Node restores the settings of terminals, and aborts where one was closed meanwhile. */
function leaveTerminals(handles: readonly number[]): void {
  for (const handle of handles) if (!isatty(handle)) closeSync(handle);
}
