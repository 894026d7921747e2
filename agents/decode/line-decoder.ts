import type { BatchBuilder } from '../../engine/index.js';
import type { StopFlag } from './stop-flag.js';
import type { UnreadableField, ValueCounters } from './value-counters.js';
import type { Written } from '../times/written.js';

/** Told of a line that is no record: bytes[lineStart, lineEnd) is the line without its end. */
export type RejectLine = (reason: string, lineStart: number, lineEnd: number) => void;

/** Where lines come from, and when they were written. */
export interface LinesOrigin {
  /** Parsed fields that the file's name gives; they win over the line's. */
  readonly captures: ReadonlyMap<string, string>;
  readonly written: Written;
  /** Once it is set, decoding throws `cancelled` before the next line. */
  readonly stop?: StopFlag | undefined;
}

export interface RecordDecoder {
  /**
   * Decodes bytes[start, end): whole lines, each ended by `\n`, which the last may lack. Adds records to the builder, whose
   * schema is the agent's, until it is full or the lines are done. Returns the position behind the last line taken.
   */
  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number;
  /** Says where the next lines come from. Their captures must have the names that the decoder was made for. */
  use(origin: LinesOrigin): void;
  /** Where the years stand behind the last line, for what is `Written` next. */
  readonly years: NonNullable<Written['years']>;
  /** Counts since the decoder was made. */
  readonly counters: Readonly<ValueCounters> & {
    /** The fields with values that did not read since this was asked last. */
    takeFields(): UnreadableField[];
  };
}
