import { createInterface } from 'node:readline/promises';
import { printable } from './text-width.js';

/** Whether the program runs in a terminal where a person can answer questions. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a yes-or-no question on standard error. Any answer but yes counts as no. */
export async function askYesNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${printable(question)} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
