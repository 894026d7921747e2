import type { FieldType } from '../../engine/index.js';
import type { TimestampFormat } from '../times/timestamp.js';

/** A field that a candidate proposes. */
export interface CandidateField {
  readonly name: string;
  readonly type: FieldType;
  /** The part of the line, where its name is another. */
  readonly source?: string;
  readonly timestamp?: TimestampFormat;
  readonly template?: string;
  /** As `TimeReading.otherOrder`. */
  readonly otherOrder?: string;
}

/** What the lines of a log may be: an agent's definition, before it has a name and a path. */
export interface Candidate {
  /** What it is called in messages: `JSON lines`. */
  readonly title: string;
  readonly format: 'plain' | 'json' | 'logfmt';
  readonly regex?: string;
  /** What a record of several lines begins with. */
  readonly start?: string;
  readonly fields: readonly CandidateField[];
  /** Lines that name the columns and the like: they match nothing, and are none the worse for it. */
  readonly headerLines?: number;
}

/** A candidate of lines of text, whose fields its pattern's parts will show. */
export interface LineShape {
  readonly title: string;
  readonly regex: string;
  readonly start?: string;
  /** A part that nearly all lines have in a log of this kind, though a line may lack it. */
  readonly needs?: string;
}

/** A line that is looked at: as text, and as the bytes that patterns read. */
export interface SampleLine {
  readonly text: string;
  readonly bytes: Uint8Array;
}
