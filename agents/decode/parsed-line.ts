import { isUtf8 } from 'node:buffer';
import { repairUtf8 } from '../../engine/index.js';
import type { TextRange } from './line-framing.js';
import { TemplateWork } from '../definition/template-value.js';

/** Kind of a parsed field's bytes. */
export const Kind = {
  /** The line has no such field, its capture took no part, or it is a JSON null. */
  absent: 0,
  /** The value's text, as a capture or a JSON string gives it. */
  text: 1,
  /** A JSON number, as written. */
  number: 2,
  /** A JSON true, false, object or array, as written. */
  other: 3,
} as const;

/** Fills a `ParsedLine` from the bytes of one line. */
export interface LineParser {
  /** Whether bytes[start, end), a line without its line end, is neither a record nor an error. */
  isBlank(bytes: Uint8Array, start: number, end: number): boolean;
  /**
   * Parses bytes[start, end) into the fields that the parser was created for. Returns null, or the reason to reject the
   * line. `isText` says that the bytes are known to be UTF-8.
   */
  parse(bytes: Uint8Array, start: number, end: number, isText: boolean, line: ParsedLine): string | null;
  /**
   * The records of a line that `parse` has not accepted, each to be parsed by itself; or the reason to reject the line. Null
   * where it is not a line of several records.
   */
  several?(bytes: Uint8Array, start: number, end: number): readonly TextRange[] | string | null;
}

/** Parts that what surrounds a text gives, such as the stream of a container. They take precedence over those of the text. */
export interface GivenParts {
  /** The first one is the whole text. */
  readonly names: readonly string[];
  /** Their values, in the order of the names. */
  readonly line: ParsedLine;
}

const nothing = new Uint8Array(0);
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Up to this size, building a text character by character is faster. */
const shortTextBytes = 24;

/**
 * The parsed fields of one line as ranges of bytes; filled again for each line. A field is identified by its place in the
 * list of names that the parser was created for.
 */
export class ParsedLine {
  /** The bytes that each field's range refers to: the line's, or a copy with escapes resolved. */
  readonly sources: Uint8Array[];
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly kinds: Uint8Array;
  /** For each field, the number of sequences that became U+FFFD while it was parsed; valid only while `hasReplaced`. */
  readonly replaced: Int32Array;
  hasReplaced = false;
  /** Number of mistakes in the line that its parser repaired. */
  repairs = 0;
  /** Number of sequences that became U+FFFD in texts returned by `text`; the caller resets it. */
  replacedInTexts = 0;
  /** The work that the line's templates may still do. Whoever fills the line must call its `begin`. */
  readonly templateWork = new TemplateWork();

  constructor(fields: number) {
    this.sources = new Array<Uint8Array>(fields).fill(nothing);
    this.starts = new Int32Array(fields);
    this.ends = new Int32Array(fields);
    this.kinds = new Uint8Array(fields);
    this.replaced = new Int32Array(fields);
  }

  /** Sets a field to source[start, end), of a `Kind`. */
  set(field: number, kind: number, source: Uint8Array, start: number, end: number): void {
    this.kinds[field] = kind;
    this.sources[field] = source;
    this.starts[field] = start;
    this.ends[field] = end;
    if (this.hasReplaced) this.replaced[field] = 0;
  }

  /** Copies a field of another line. */
  setFrom(field: number, other: ParsedLine, otherField: number): void {
    const source = other.sources[otherField]!;
    this.set(field, other.kinds[otherField]!, source, other.starts[otherField]!, other.ends[otherField]!);
    if (other.hasReplaced) this.countReplaced(field, other.replaced[otherField]!);
  }

  /** Records that `count` sequences of the field just set were replaced. */
  countReplaced(field: number, count: number): void {
    if (!this.hasReplaced) this.replaced.fill(0);
    this.hasReplaced = true;
    this.replaced[field]! += count;
  }

  /** The text of a field; undefined where it is absent. Invalid UTF-8 becomes U+FFFD. */
  text(field: number): string | undefined {
    if (this.kinds[field] === Kind.absent) return undefined;
    if (this.hasReplaced) this.replacedInTexts += this.replaced[field]!;
    const source = this.sources[field]!;
    const start = this.starts[field]!;
    const end = this.ends[field]!;
    const ascii = end - start <= shortTextBytes ? asciiText(source, start, end) : undefined;
    if (ascii !== undefined) return ascii;
    const bytes = source.subarray(start, end);
    if (!isUtf8(bytes)) this.replacedInTexts += repairUtf8(bytes, 0, bytes.length).replacedAt.length;
    return decoder.decode(bytes);
  }
}

/** bytes[start, end) as text. Invalid UTF-8 becomes U+FFFD. */
export function bytesText(bytes: Uint8Array, start: number, end: number): string {
  const ascii = end - start <= shortTextBytes ? asciiText(bytes, start, end) : undefined;
  return ascii ?? decoder.decode(bytes.subarray(start, end));
}

function asciiText(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = '';
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte >= 0x80) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}
