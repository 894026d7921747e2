import { isUtf8 } from 'node:buffer';
import { type BatchBuilder, firstIndex, repairUtf8 } from '../../engine/index.js';
import type { Reading } from '../sources/source-position.js';
import type { StopFlag } from './stop-flag.js';
import type { UnreadableField, ValueCounters, ValueTally } from './value-writer.js';
import type { Written } from '../../engine/times/timestamp.js';
import { byteFlags, EscapedTexts, KeyTable } from './escaped-texts.js';
import { expectedAt, skipSpace } from './line-text.js';
import { ofLine } from './json-lines.js';
import { bytesText, Kind, type LineParser, ParsedLine } from './parsed-line.js';
import { joinLines, type MultilineRecords, type TextRange } from './line-framing.js';
import { LinePattern } from '../definition/line-pattern.js';
import { patternStepsMax } from '../definition/pattern-automaton.js';

/**
 * Called for a line that is not a record; bytes[lineStart, lineEnd) is the line without its line end. `text` is kept instead of
 * these bytes, if it is given, and `before` before it, without which it can't be decoded again; they are not changed afterwards.
 */
export type RejectLine = (
  reason: string,
  lineStart: number,
  lineEnd: number,
  text?: Uint8Array,
  before?: Uint8Array,
) => void;

/** The same for a text whose position its caller knows. */
export type RejectText = (reason: string, text?: Uint8Array) => void;

/** Origin of lines, and when they were written. */
export interface LinesOrigin {
  /** Parsed fields from the file's name; they take precedence over the line's. */
  readonly captures: ReadonlyMap<string, string>;
  readonly written: Written;
  /** What must be known to decode them; undefined where nothing must be, or they are the first ones. */
  readonly reading?: Reading | undefined;
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
  /** What must be known to decode the following lines; absent where lines do not change it. */
  readonly reading?: Reading | undefined;
  /** Counts since the decoder was created. */
  readonly counters: ValueCounters & {
    /** Returns the fields with unreadable values since the last call. */
    takeFields(): UnreadableField[];
    /** Returns the rows of the batch, since the last call, that are no records of their format: they get the time by which they are placed. */
    takeUntimed(): number[];
  };
}

const quote = 0x22;
const equals = 0x3d;

/** Why lines without a pair are rejected. */
export const noPairReason = 'is not logfmt: it has no key=value pair';

/** Bytes between pairs: blank, tab and line ends. */
const isBlank = byteFlags(' \t\r\n');
const endsKey = byteFlags(' \t\r\n="');
const endsQuotedRun = byteFlags('"\\');

/** The value of a key without `=`. */
const trueText = Buffer.from('true');

/**
 * Parses lines of logfmt: `key=value`, `key="quoted text"`, and `key` alone with the value `true`, separated by blanks. An
 * unquoted value extends to the next blank, and may be empty. In quotes, the escapes of Go and JSON are resolved; a
 * backslash before anything else stands for itself. Keys are matched exactly; of a key that occurs twice, the last value
 * counts. A line without `=` is rejected, since it is most likely a sentence. A line of blanks is blank.
 */
export class LogfmtLineParser implements LineParser {
  readonly #fields: number;
  readonly #table: Pick<KeyTable, 'find'>;
  readonly #texts = new EscapedTexts();

  /**
   * @param names wanted keys, in the order of the `ParsedLine`
   * @param table finds their numbers
   */
  constructor(names: readonly string[], table?: Pick<KeyTable, 'find'>) {
    this.#fields = names.length;
    this.#table = table ?? new KeyTable(names.map((name) => ({ name, parent: ofLine })));
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return skipSpace(bytes, start, end) === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.#fields);
    line.hasReplaced = false;
    this.#texts.clear();
    const fail = (at: number, expected: string): string =>
      `is not logfmt: ${expectedAt(bytes, start, end, at, expected)}`;
    let hasPair = false;
    let at = skipSpace(bytes, start, end);
    while (at < end) {
      const keyStart = at;
      while (at < end && endsKey[bytes[at]!] === 0) at++;
      const behind = at < end ? bytes[at]! : 0;
      if (behind === quote) return fail(at, 'no quotation mark in a key');
      if (at === keyStart) return fail(at, 'a key before "="');
      const field = this.#table.find(bytes, keyStart, at, ofLine);
      if (behind !== equals) {
        if (field >= 0) line.set(field, Kind.text, trueText, 0, trueText.length);
      } else if (at + 1 < end && bytes[at + 1] === quote) {
        const textStart = at + 2;
        at = this.#quoted(bytes, textStart, end, field, line);
        if (at === end) return fail(end, 'a quotation mark that ends the value');
        at++;
        if (at < end && isBlank[bytes[at]!] === 0) return fail(at, 'a blank after the quotation mark');
      } else {
        const valueStart = ++at;
        while (at < end && isBlank[bytes[at]!] === 0) at++;
        if (field >= 0) line.set(field, Kind.text, bytes, valueStart, at);
      }
      if (behind === equals) hasPair = true;
      at = skipSpace(bytes, at, end);
    }
    return hasPair ? null : noPairReason;
  }

  /**
   * Reads a quoted text from `start` on, and sets it where `field` is one of the line's. Returns the position of the closing
   * quote, or `end` where there is none.
   */
  #quoted(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): number {
    let at = start;
    let hasEscape = false;
    for (;;) {
      while (at < end && endsQuotedRun[bytes[at]!] === 0) at++;
      if (at >= end) return end;
      if (bytes[at] === quote) break;
      hasEscape = true;
      at += 2;
    }
    if (field < 0) return at;
    if (hasEscape) this.#texts.keep(bytes, start, at, field, line);
    else line.set(field, Kind.text, bytes, start, at);
    return at;
  }
}

/** The distinct keys of a line that the parser accepts. */
export function logfmtKeys(bytes: Uint8Array): string[] {
  const keys = new Set<string>();
  const find = (source: Uint8Array, start: number, end: number): number => {
    keys.add(bytesText(source, start, end));
    return -1;
  };
  new LogfmtLineParser([], { find }).parse(bytes, 0, bytes.length, true, new ParsedLine(0));
  return [...keys];
}

/** Decodes lines, and also texts that contain line feeds. */
export interface RecordTextDecoder extends RecordDecoder {
  /**
   * Decodes one text as it is. `reject` gets no position, which the caller knows. With `mayBeSeveral` the text is a line, which
   * may have several records. Returns false, and takes nothing, where there is no room for all of them; else true.
   */
  decodeText(text: TextRange, builder: BatchBuilder, reject: RejectText, mayBeSeveral?: boolean): boolean;
  /** Whether it masks texts, so that what is kept of them must come from it. */
  readonly masks?: boolean;
  /** What is kept of a text that is rejected without being decoded; undefined for the text itself. */
  kept(text: TextRange): Uint8Array | undefined;
  readonly counters: ValueTally;
  /** Begins a turn. `decode` does so itself; a caller of `decodeText` does it, and checks `turnIsOver`. */
  beginTurn(): void;
  readonly turnIsOver: boolean;
}

/** A decoder around another one, `lines`, which has the counts and the state of the guessing of years. */
export abstract class OuterDecoder<Inner extends RecordDecoder> implements RecordDecoder {
  constructor(protected readonly lines: Inner) {}

  get counters(): Inner['counters'] {
    return this.lines.counters;
  }

  get years(): NonNullable<Written['years']> {
    return this.lines.years;
  }

  get reading(): Reading | undefined {
    return this.lines.reading;
  }

  use(origin: LinesOrigin): void {
    this.lines.use(origin);
  }

  abstract decode(
    bytes: Uint8Array,
    start: number,
    end: number,
    builder: BatchBuilder,
    reject: RejectLine,
  ): number;
}

/** Decodes records of several lines. Records of one line, which most are, are passed in runs to the decoder of lines. */
export class MultilineDecoder extends OuterDecoder<RecordTextDecoder> {
  constructor(
    lines: RecordTextDecoder,
    private readonly records: MultilineRecords,
  ) {
    super(lines);
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const isText = isUtf8(bytes.subarray(start, end));
    // The search for the end of the last line must not go beyond it.
    const content = bytes.subarray(0, end);
    let at = start;
    this.lines.beginTurn();
    while (at < end && !builder.full) {
      const runEnd = this.#runEnd(content, at, end, isText);
      if (runEnd > at) {
        at = this.lines.decode(bytes, at, runEnd, builder, reject);
        if (at < runEnd) return at;
        continue;
      }
      const from = at;
      at = this.records.recordEnd(content, from, end, isText);
      const textEnd = bytes[at - 1] === 0x0a ? at - 1 : at;
      this.lines.decodeText(joinLines(bytes, from, at), builder, (reason, text) =>
        reject(reason, from, textEnd, text),
      );
      if (this.lines.turnIsOver) break;
    }
    return at;
  }

  /** End of the run of single-line records from `start` on. */
  #runEnd(bytes: Uint8Array, start: number, end: number, isText: boolean): number {
    const { records } = this;
    let at = start;
    while (at < end) {
      const recordEnd = records.recordEnd(bytes, at, end, isText);
      if (records.lines > 1) break;
      at = recordEnd;
    }
    return at;
  }
}

/** Why lines of an agent with format `plain` are rejected. */
export const noMatchReason = 'does not match the pattern';
export const patternStepsReason = `takes more than ${patternStepsMax} steps to match against the pattern`;

/**
 * Parses lines by a pattern, whose named captures are the fields. A capture that did not take part is absent; an empty one
 * is the empty text. Invalid UTF-8 becomes U+FFFD before the pattern is matched. An empty line is blank.
 */
export class PlainLineParser implements LineParser {
  readonly #pattern: LinePattern;
  /** For each group of the pattern, its field. */
  readonly #fields: Int32Array;

  /** `names` are the wanted fields, in the order of the `ParsedLine`. Throws `invalid` for an invalid pattern. */
  constructor(regex: string, names: readonly string[]) {
    this.#pattern = new LinePattern(regex, new Set(names));
    this.#fields = Int32Array.from(this.#pattern.groupNames, (name) => names.indexOf(name));
  }

  isBlank(_bytes: Uint8Array, start: number, end: number): boolean {
    return start === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, isText: boolean, line: ParsedLine): string | null {
    line.hasReplaced = false;
    if (!isText && !isUtf8(bytes.subarray(start, end))) return this.#parseRepaired(bytes, start, end, line);
    return this.#parseText(bytes, start, end, line);
  }

  #parseText(bytes: Uint8Array, start: number, end: number, line: ParsedLine): string | null {
    const pattern = this.#pattern;
    const matched = pattern.match(bytes, start, end);
    if (matched !== true) return matched === false ? noMatchReason : patternStepsReason;
    const captures = pattern.captures;
    const fields = this.#fields;
    for (let group = 0; group < fields.length; group++) {
      const from = captures[2 * group]!;
      const kind = from < 0 ? Kind.absent : Kind.text;
      line.set(fields[group]!, kind, bytes, from, captures[2 * group + 1]!);
    }
    return null;
  }

  #parseRepaired(bytes: Uint8Array, start: number, end: number, line: ParsedLine): string | null {
    const repaired = repairUtf8(bytes, start, end);
    const problem = this.#parseText(repaired.bytes, 0, repaired.bytes.length, line);
    if (problem !== null) return problem;
    const { replacedAt } = repaired;
    const below = (end: number): number => firstIndex(replacedAt.length, (i) => replacedAt[i]! >= end);
    for (const field of this.#fields) {
      const before = below(line.starts[field]!);
      line.countReplaced(field, below(line.ends[field]!) - before);
    }
    return null;
  }
}
