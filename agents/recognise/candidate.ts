import type { FieldType } from '../../engine/index.js';
import type { TimestampFormat } from '../times/timestamp.js';

/** A field that a candidate proposes. */
export interface CandidateField {
  readonly name: string;
  readonly type: FieldType;
  /** The part of the line, where it has another name than the field. */
  readonly source?: string;
  readonly timestamp?: TimestampFormat;
  readonly template?: string;
  /** For a field that is text although its values are numbers: a value that a float would not give back as it is written. */
  readonly unlikeFloat?: string;
  /** See `TimeReading.otherOrder`. */
  readonly otherOrder?: string;
}

/** A possible format of a log's lines: an agent's definition without a name and a path. */
export interface Candidate {
  /** Name in messages: `JSON lines`. */
  readonly title: string;
  readonly format: 'plain' | 'json' | 'logfmt';
  readonly regex?: string;
  /** Expression for the first line of a record of several lines. */
  readonly start?: string;
  readonly fields: readonly CandidateField[];
  /** Number of lines such as a header with column names, which match nothing without counting against the candidate. */
  readonly headerLines?: number;
}

/** A candidate for lines of text; its fields follow from the groups of the expression. */
export interface LineShape {
  readonly title: string;
  readonly regex: string;
  readonly start?: string;
  /** A group that nearly all lines of such a log have, although a single line may lack it. */
  readonly needs?: string;
}

/** A line of the sample, as text and as the bytes that patterns match. */
export interface SampleLine {
  readonly text: string;
  readonly bytes: Uint8Array;
}
