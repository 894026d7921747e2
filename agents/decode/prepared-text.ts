import { isUtf8 } from 'node:buffer';
import { type BatchBuilder, lineBytesMax, repairUtf8 } from '../../engine/index.js';
import { isTable, type LineFormat } from '../definition/definition.js';
import { LinePattern } from '../definition/line-pattern.js';
import { byteFlags } from './escaped-texts.js';
import { OuterDecoder, type RecordTextDecoder, type RejectLine, type RejectText } from './line-decoder.js';
import { textStart, type TextRange } from './line-framing.js';
import { ValueTally } from './value-writer.js';

const escape = 0x1b;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const mask = Buffer.from('***');
const nothing = new Uint8Array(0);

type Writable = { -readonly [Key in keyof TextRange]: TextRange[Key] };

/** The pattern of a mask. Its first group is the whole match. */
export function maskPattern(text: string): LinePattern {
  return new LinePattern(`(${text})`, 'all');
}

/**
 * How often a mask may read a text on average. Usually it reads it once; one that reads on to the end behind each match would take
 * quadratic time. The rest of such a text is masked.
 */
const maskReadingsMax = 32;

/** What a mask hides in a text: the groups of its matches, without groups all of them. Begin and end of each range, ascending. */
function maskedRanges(pattern: LinePattern, { bytes, start, end }: TextRange): number[] {
  const ranges: number[] = [];
  let readBytes = 0;
  for (let from = start; from <= end;) {
    const matched = pattern.match(bytes, start, end, from);
    if (matched === false) break;
    readBytes += pattern.reached - from;
    if (matched === undefined || readBytes > maskReadingsMax * (end - start) + lineBytesMax)
      return [...ranges, from, end];
    const { captures } = pattern;
    const groups: [number, number][] = [];
    for (let i = captures.length === 2 ? 0 : 2; i < captures.length; i += 2)
      if (captures[i + 1]! > captures[i]!) groups.push([captures[i]!, captures[i + 1]!]);
    let last = from;
    for (const [first, behind] of groups.sort((a, b) => a[0] - b[0])) {
      if (behind > last) ranges.push(Math.max(first, last), behind);
      last = Math.max(last, behind);
    }
    from = Math.max(captures[1]!, captures[0]! + 1);
    while (from < end && (bytes[from]! & 0xc0) === 0x80) from++;
  }
  return ranges;
}

/** End of the escape sequence of a terminal that begins at `at`, as ECMA-48 writes them. */
function sequenceEnd(bytes: Uint8Array, at: number, end: number): number {
  const kind = at + 1 < end ? bytes[at + 1]! : 0;
  let next = at + 2;
  if (kind === 0x5b) {
    while (next < end && bytes[next]! >= 0x20 && bytes[next]! < 0x40) next++;
    return next < end && bytes[next]! >= 0x40 && bytes[next]! < 0x7f ? next + 1 : next;
  }
  // A text for the terminal, such as a title, up to BEL or ESC \.
  if (kind === 0x5d || kind === 0x50 || kind === 0x58 || kind === 0x5e || kind === 0x5f) {
    while (next < end && bytes[next] !== 7 && bytes[next] !== escape && bytes[next] !== lineFeed) next++;
    if (bytes[next] === 7 && next < end) return next + 1;
    return next + 1 < end && bytes[next] === escape && bytes[next + 1] === 0x5c ? next + 2 : at + 2;
  }
  next = at + 1;
  while (next < end && bytes[next]! >= 0x20 && bytes[next]! < 0x30) next++;
  return next < end && bytes[next]! >= 0x30 && bytes[next]! < 0x7f ? next + 1 : next;
}

/** The escape sequences in a text: begin and end of each. */
function sequences({ bytes, start, end }: TextRange): number[] {
  const ranges: number[] = [];
  const text = bytes.subarray(0, end);
  for (let at = text.indexOf(escape, start); at >= 0; at = text.indexOf(escape, ranges.at(-1)))
    ranges.push(at, sequenceEnd(bytes, at, end));
  return ranges;
}

/** A text without the ranges, which ascend, with `instead` in place of each. */
function replaced(whole: TextRange, ranges: readonly number[], instead: Uint8Array): Writable {
  if (ranges.length === 0) return whole;
  const { bytes, start, end } = whole;
  const pieces: Uint8Array[] = [];
  let from = start;
  for (let i = 0; i < ranges.length; i += 2) {
    pieces.push(bytes.subarray(from, ranges[i]), instead);
    from = ranges[i + 1]!;
  }
  const text = Buffer.concat([...pieces, bytes.subarray(from, end)]);
  return { bytes: text, start: 0, end: text.length };
}

/** The parts of ranges that lie between flagged bytes. */
function between(bytes: Uint8Array, ranges: readonly number[], flags: Uint8Array): number[] {
  const parts: number[] = [];
  for (let i = 0; i < ranges.length; i += 2) {
    let from = ranges[i]!;
    for (let at = from; at <= ranges[i + 1]!; at++) {
      if (at < ranges[i + 1]! && flags[bytes[at]!] === 0) continue;
      if (at > from) parts.push(from, at);
      from = at + 1;
    }
  }
  return parts;
}

/** Bytes that may divide a row into values and lines. They stay, so that what is masked moves no value to another column. */
const dividers = { csv: '"\r\n', tsv: '\t', w3c: ' \t,"' };

/** Strips, trims, skips and masks texts as their format says. */
export class TextPreparer {
  readonly #strips: boolean;
  readonly #trims: boolean;
  readonly #skip: LinePattern | null;
  readonly #masks: readonly LinePattern[];
  /** Flags of the bytes that stay; null where lines are no rows. */
  readonly #dividers: Uint8Array | null = null;

  /** Throws `invalid` for an invalid pattern. */
  constructor(
    lines: LineFormat,
    private readonly counters = new ValueTally(),
  ) {
    const { format, separator = ',', strip, trim, skip, mask: masks = [] } = lines;
    this.#strips = strip !== undefined;
    // Of a row, each value is trimmed.
    this.#trims = trim === true && !isTable(lines);
    this.#skip = skip === undefined ? null : new LinePattern(skip, new Set());
    this.#masks = masks.map(maskPattern);
    if (format === 'csv' || format === 'tsv' || format === 'w3c')
      this.#dividers = byteFlags(dividers[format] + (format === 'csv' ? separator : ''));
  }

  /** Whether there is anything to do. */
  get isNeeded(): boolean {
    return this.#strips || this.#trims || this.#skip !== null || this.masks;
  }

  get masks(): boolean {
    return this.#masks.length > 0;
  }

  /** The text to parse; null for one to skip. */
  prepare(text: TextRange): TextRange | null {
    const shown = this.#shown(text);
    // One that is too long will be rejected.
    return shown === null || shown.end - shown.start > lineBytesMax ? shown : this.#masked(shown);
  }

  #shown({ bytes, start, end }: TextRange): TextRange | null {
    const { counters } = this;
    let text: Writable = { bytes, start: textStart(bytes, start, end), end };
    for (let at = start; at < text.start; at++) if (bytes[at] === 0) counters.nulBytes++;
    if (end - text.start > lineBytesMax) return text;
    if (!isUtf8(bytes.subarray(text.start, end))) {
      const repaired = repairUtf8(bytes, text.start, end);
      counters.replacedBytes += repaired.replacedAt.length;
      text = { bytes: repaired.bytes, start: 0, end: repaired.bytes.length };
    }
    if (this.#strips) text = replaced(text, sequences(text), nothing);
    if (this.#trims) {
      while (text.end > text.start && text.bytes[text.end - 1]! <= 0x20) text.end--;
      while (text.start < text.end && text.bytes[text.start]! <= 0x20) text.start++;
    }
    if (this.#skip?.match(text.bytes, text.start, text.end) !== true) return text;
    counters.skippedLines++;
    return null;
  }

  #masked(shown: TextRange): TextRange {
    let text = shown;
    for (const pattern of this.#masks) {
      const ranges = maskedRanges(pattern, text);
      this.counters.maskedTexts += ranges.length / 2;
      const hidden = this.#dividers === null ? ranges : between(text.bytes, ranges, this.#dividers);
      text = replaced(text, hidden, mask);
    }
    return text;
  }
}

/** Prepares lines and texts of records before they are parsed. What is rejected is kept as it is then. */
class PreparingDecoder extends OuterDecoder<RecordTextDecoder> implements RecordTextDecoder {
  constructor(
    lines: RecordTextDecoder,
    private readonly texts: TextPreparer,
  ) {
    super(lines);
  }

  get masks(): boolean {
    return this.texts.masks;
  }

  beginTurn(): void {
    this.lines.beginTurn();
  }

  get turnIsOver(): boolean {
    return this.lines.turnIsOver;
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const content = bytes.subarray(0, end);
    this.beginTurn();
    let at = start;
    while (at < end && !builder.full) {
      const feed = content.indexOf(lineFeed, at);
      const lineEnd = feed < 0 ? end : feed;
      const textEnd = lineEnd > at && bytes[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd;
      const from = at;
      const text = { bytes, start: from, end: textEnd };
      if (!this.decodeText(text, builder, (reason, kept) => reject(reason, from, textEnd, kept), true))
        return at;
      at = Math.min(end, lineEnd + 1);
      if (this.turnIsOver) break;
    }
    return at;
  }

  decodeText(text: TextRange, builder: BatchBuilder, reject: RejectText, mayBeSeveral = false): boolean {
    const prepared = this.texts.prepare(text);
    if (prepared === null) return true;
    const keep: RejectText = (reason, kept) => reject(reason, kept ?? copyOf(prepared));
    return this.lines.decodeText(prepared, builder, keep, mayBeSeveral);
  }

  kept(text: TextRange): Uint8Array {
    return copyOf(this.texts.prepare(text) ?? text);
  }
}

function copyOf({ bytes, start, end }: TextRange): Uint8Array {
  return bytes.slice(start, end);
}

/** The decoder of texts that are prepared as their format says; `lines` itself where they need not be. */
export function prepared(lines: RecordTextDecoder, file: LineFormat): RecordTextDecoder {
  const texts = new TextPreparer(file, lines.counters);
  return texts.isNeeded ? new PreparingDecoder(lines, texts) : lines;
}
