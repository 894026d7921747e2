import type { BatchBuilder } from '../../engine/index.js';
import type { ValueCounters } from './value-writer.js';
import type { Written } from '../times/written.js';

/** Told of a line that is no record: bytes[lineStart, lineEnd) is the line without its end. */
export type RejectLine = (reason: string, lineStart: number, lineEnd: number) => void;

export interface RecordDecoder {
  /**
   * Decodes bytes[start, end): whole lines, each ended by `\n`, which the last may lack. Adds records to the builder, whose
   * schema is the agent's, until it is full or the lines are done. Returns the position behind the last line taken.
   */
  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number;
  /** Replaces the values of the fields that the file's name gives, which must be the same fields: for the next file. */
  useCaptures(captures: ReadonlyMap<string, string>): void;
  /** Says when the next lines were written. */
  useWritten(written: Written): void;
  /** Where the years stand behind the last line, for what is `Written` next. */
  readonly years: NonNullable<Written['years']>;
  /** Counts since the decoder was made. */
  readonly counters: Readonly<ValueCounters>;
}
