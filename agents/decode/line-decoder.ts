import type { BatchBuilder } from '../../engine/index.js';
import type { StopFlag } from './stop-flag.js';
import type { UnreadableField, ValueCounters } from './value-counters.js';
import type { Written } from '../times/written.js';

/** Called for a line that is not a record; bytes[lineStart, lineEnd) is the line without its line end. */
export type RejectLine = (reason: string, lineStart: number, lineEnd: number) => void;

/** Origin of lines, and when they were written. */
export interface LinesOrigin {
  /** Parsed fields from the file's name; they take precedence over the line's. */
  readonly captures: ReadonlyMap<string, string>;
  readonly written: Written;
  /** Once the flag is set, decoding throws `cancelled` before the next line. */
  readonly stop?: StopFlag | undefined;
}

/** Decodes lines of an agent into records. */
export interface RecordDecoder {
  /**
   * Decodes bytes[start, end): complete lines, each ended by `\n`, which the last may lack. Adds records to the builder,
   * which must have the agent's schema, until it is full or all lines are decoded. Returns the end of the last line taken.
   */
  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number;
  /** Sets the origin of the next lines. Its captures must have the names that the decoder was created with. */
  use(origin: LinesOrigin): void;
  /** State of the guessing of years after the last line, to be passed on in the `Written` of the following lines. */
  readonly years: NonNullable<Written['years']>;
  /** Counts since the decoder was created. */
  readonly counters: Readonly<ValueCounters> & {
    /** Returns the fields with unreadable values since the last call. */
    takeFields(): UnreadableField[];
  };
}
