import { createHash } from 'node:crypto';
import type { SetColumn } from './question.js';

/** A summary of an answer, by which two answers can be compared: the number of records, and a digest of their values in order. */
export interface AnswerDigest {
  readonly rows: number;
  readonly bytes: number;
  readonly digest: string;
}

/**
 * Puts integers of 16 and more digits in quotes, so that JSON.parse does not round them. It may also do so within a string; that is
 * harmless, as the same text gives the same result on every side.
 */
export function quoteLongIntegers(line: string): string {
  return line.replace(/:(-?\d{16,})(?=[,}])/g, ':"$1"');
}

/** Reads an answer in pieces of JSON Lines and digests the values of `columns`. `_cursor` is left out, as its values differ between sides. */
export class AnswerReader {
  private readonly hash = createHash('sha256');
  private readonly decoder = new TextDecoder('utf-8', { fatal: true });
  private rest = '';
  private rows = 0;
  private bytes = 0;

  constructor(private readonly columns: readonly SetColumn[]) {}

  /** Takes the next piece of the answer. Throws where a record lacks a column. */
  take(piece: Uint8Array | string): void {
    this.bytes += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.byteLength;
    this.rest += typeof piece === 'string' ? piece : this.decoder.decode(piece, { stream: true });
    const lines = this.rest.split('\n');
    this.rest = lines.pop()!;
    for (const line of lines) this.takeLine(line);
  }

  /** The digest, after the last piece. */
  end(): AnswerDigest {
    if (this.rest !== '') this.takeLine(this.rest);
    return { rows: this.rows, bytes: this.bytes, digest: this.hash.digest('hex').slice(0, 32) };
  }

  private takeLine(line: string): void {
    const record = JSON.parse(quoteLongIntegers(line)) as Record<string, string | number | null>;
    const values = this.columns.map(({ name }) => {
      const value = record[name];
      if (value === undefined) throw new Error(`the answer lacks the field ${name}: ${line}`);
      return value;
    });
    this.hash.update(JSON.stringify(values));
    this.rows++;
  }
}
