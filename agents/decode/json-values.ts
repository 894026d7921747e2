import type { BatchBuilder } from '../../engine/index.js';
import {
  closeBrace,
  closeBracket,
  comma,
  JsonScanner,
  openBrace,
  openBracket,
  quote,
} from './json-scanner.js';
import { OuterDecoder, type RecordTextDecoder, type RejectLine, type RejectText } from './line-decoder.js';
import { type LongRecord, type RecordEnds, textStart, type TextRange } from './line-framing.js';
import { skipSpace } from './line-text.js';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const backslash = 0x5c;

/** Content of an overlong value that is searched for its closing bracket; from there on, a line feed ends it. */
const structureBytesMax = 32 * 1024 * 1024;

/**
 * Values of JSON in content, whatever the lines: one after another, the elements of arrays, or with `records` those of the
 * array at that path of each object. A value ends where its brackets close. What is no JSON ends with its line, or before a
 * brace at the beginning of a line.
 *
 * Content may be cut behind any value and read on there, without knowing what came before: a comma precedes an element, and
 * the brackets and keys around an array belong to the value behind or before them.
 */
export class JsonValues implements RecordEnds {
  readonly timeoutMs = null;
  /** Begin of what `next` found: the value and what belongs to it. */
  start = 0;
  /** The value that `next` found; -1 where there is none, or where nothing of it is there yet. */
  valueStart = -1;
  valueEnd = -1;
  /** Why the value is no record whatever it is; null for no such reason. */
  problem: string | null = null;
  readonly #path: readonly Uint8Array[];
  readonly #scan = new JsonScanner();

  /** @param records path of the array with the records; empty where the values themselves are records */
  constructor(private readonly records: readonly string[] = []) {
    this.#path = records.map((key) => Buffer.from(key));
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    for (let at = start; ;) {
      const behind = at < end ? this.next(bytes, at, end) : -1;
      if (behind < 0) return at;
      at = behind;
    }
  }

  /** Finds the next value. Returns the position behind it and the space after it; -1 where its end is not there. */
  next(bytes: Uint8Array, from: number, end: number): number {
    this.valueStart = this.valueEnd = -1;
    this.problem = null;
    let at = skipSpace(bytes, from, end);
    this.start = at;
    if (at === end) return end;
    for (let text = textStart(bytes, at, end); text > at; text = textStart(bytes, at, end))
      at = skipSpace(bytes, text, end);
    this.start = at;
    const first = at < end ? bytes[at]! : 0;
    if (first === closeBracket) return this.#close(bytes, at + 1, end);
    let isElement = first === comma || first === openBracket;
    if (isElement) at = skipSpace(bytes, at + 1, end);
    if (first === openBracket && bytes[at] === closeBracket && at < end)
      return this.#close(bytes, at + 1, end);
    if (first === openBrace && this.#path.length > 0) {
      at = this.#head(bytes, at, end);
      if (at < 0) return this.#invalid(bytes, this.start, end);
      if (this.problem !== null) return this.#behind(bytes, this.start, at, end);
      if (at < end && bytes[at] === closeBracket) return this.#close(bytes, at + 1, end);
      isElement = true;
    }
    if (at === end) return -1;
    this.valueStart = at;
    if (!isElement && bytes[at] !== openBrace) {
      this.#scan.fail(at, '"{"');
      return this.#invalid(bytes, at, end);
    }
    const valueEnd = this.#scan.value(bytes, at, end, 0);
    if (valueEnd < 0) return this.#invalid(bytes, at, end);
    // A number may go on.
    return valueEnd === end && !closes(bytes[end - 1]!) ? -1 : this.#behind(bytes, at, valueEnd, end);
  }

  long(searchedBytes: number, beginning: Uint8Array): LongRecord {
    if (searchedBytes > structureBytesMax)
      return { from: searchedBytes, find: (piece) => piece.indexOf(lineFeed) };
    this.next(beginning, 0, beginning.length);
    const isRest = this.valueStart < 0 && beginning[this.start] === closeBracket;
    const from = isRest ? this.start + 1 : Math.max(this.start, this.valueStart);
    const search = new LongValue(isRest ? this.#path.length : 0, structureBytesMax);
    return { from, find: (piece) => search.find(piece) };
  }

  #behind(bytes: Uint8Array, valueStart: number, valueEnd: number, end: number): number {
    this.valueStart = valueStart;
    this.valueEnd = valueEnd;
    return skipSpace(bytes, valueEnd, end);
  }

  /** End of what is no JSON from `valueStart` on, by where the scan failed. */
  #invalid(bytes: Uint8Array, valueStart: number, end: number): number {
    const failed = Math.max(valueStart, this.#scan.failedAt);
    this.valueStart = valueStart;
    if (
      failed > valueStart &&
      bytes[failed] === openBrace &&
      bytes[failed - 1] === lineFeed &&
      failed < end
    ) {
      this.valueEnd = withoutLineEnd(bytes, valueStart, failed);
      return failed;
    }
    const feed = bytes.subarray(0, end).indexOf(lineFeed, failed);
    if (feed < 0) return -1;
    this.valueEnd = withoutLineEnd(bytes, valueStart, feed + 1);
    return feed + 1;
  }

  /**
   * Scans an object up to the array with the records; returns the position of its first element. Where there is no such
   * array, it returns the end of the object, and sets the problem. -1 as the scanner.
   */
  #head(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    for (let level = 0; level >= 0;) {
      at = skipSpace(bytes, at + 1, end);
      if (at < end && bytes[at] === closeBrace) at++;
      else {
        const keyStart = at + 1;
        at = this.#scan.key(bytes, at, end);
        if (at < 0) return -1;
        const key = this.#path[level]!;
        const isOnPath = bytes[keyStart + key.length] === quote && startsWith(bytes, keyStart, key);
        const isLast = level === this.#path.length - 1;
        if (isOnPath && at < end && bytes[at] === (isLast ? openBracket : openBrace)) {
          if (isLast) return skipSpace(bytes, at + 1, end);
          level++;
          continue;
        }
        at = this.#scan.value(bytes, at, end, level + 1);
        if (at < 0) return -1;
        at = skipSpace(bytes, at, end);
        if (at < end && bytes[at] === comma) continue;
        if (at === end || bytes[at] !== closeBrace) return this.#scan.fail(at, '"," or "}"');
        at++;
      }
      // The object on the path is over: go on behind it.
      for (level--; level >= 0; level--) {
        at = skipSpace(bytes, at, end);
        if (at < end && bytes[at] === comma) break;
        if (at === end || bytes[at] !== closeBrace) return this.#scan.fail(at, '"," or "}"');
        at++;
      }
    }
    this.problem = `has no array ${JSON.stringify(this.records.join('.'))}`;
    return at;
  }

  /** Scans what follows the end of an array: with a path, the rest of the objects around it. */
  #close(bytes: Uint8Array, start: number, end: number): number {
    let at = skipSpace(bytes, start, end);
    for (let level = this.#path.length; level > 0; level--) {
      while (at < end && bytes[at] === comma) {
        const value = this.#scan.key(bytes, skipSpace(bytes, at + 1, end), end);
        at = value < 0 ? -1 : this.#scan.value(bytes, value, end, level);
        if (at < 0) return this.#invalid(bytes, this.start, end);
        at = skipSpace(bytes, at, end);
      }
      if (at === end) return -1;
      // A list of records alone.
      if (bytes[at] !== closeBrace) return at;
      at = skipSpace(bytes, at + 1, end);
    }
    return at;
  }
}

/** The end of bytes[start, end) before the line end that it may end with. */
function withoutLineEnd(bytes: Uint8Array, start: number, end: number): number {
  if (end === start || bytes[end - 1] !== lineFeed) return end;
  return end - 1 > start && bytes[end - 2] === carriageReturn ? end - 2 : end - 1;
}

/** Whether a value that ends with this byte is over: all but numbers and words. */
function closes(byte: number): boolean {
  return byte === closeBrace || byte === closeBracket || byte === quote;
}

function startsWith(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  return text.every((byte, i) => bytes[at + i] === byte);
}

/** Searches the last byte of a value over pieces, by its brackets and strings alone. A line feed in a string ends it too. */
class LongValue {
  #inString = false;
  #isEscaped = false;

  /** @param depth open brackets where the search begins */
  constructor(
    private depth: number,
    private leftBytes: number,
  ) {}

  /** Position of the last byte of the value in the next piece, or -1. */
  find(piece: Uint8Array): number {
    const structured = Math.min(piece.length, this.leftBytes);
    this.leftBytes -= structured;
    for (let at = 0; at < structured; at++) {
      const byte = piece[at]!;
      if (this.#inString) {
        if (byte === lineFeed) return at;
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#inString = false;
        else continue;
      } else if (byte === quote) this.#inString = true;
      else if (byte === openBrace || byte === openBracket) this.depth++;
      else if (byte === closeBrace || byte === closeBracket) this.depth--;
      else if (byte !== lineFeed || this.depth > 0) continue;
      if (this.depth <= 0 && !this.#inString && !this.#isEscaped) return at;
    }
    return structured < piece.length ? piece.indexOf(lineFeed, structured) : -1;
  }
}

/** The objects of a line that is several objects, or one array of objects. Null for any other line. */
export function objectsOfLine(bytes: Uint8Array, start: number, end: number): TextRange[] | null {
  const values = new JsonValues();
  const found: TextRange[] = [];
  const isArray = bytes[skipSpace(bytes, start, end)] === openBracket;
  let isClosed = !isArray;
  let expected = isArray ? openBracket : openBrace;
  for (let at = skipSpace(bytes, start, end); at < end;) {
    const next = values.next(bytes, at, end);
    const { valueStart, valueEnd } = values;
    const first = bytes[at];
    const isEnd = isArray && !isClosed && (first === closeBracket || (first === expected && valueStart < 0));
    if (isEnd && next >= 0) {
      isClosed = true;
      expected = -1;
    } else {
      if (first !== expected || next < 0 || bytes[valueStart] !== openBrace) return null;
      found.push({ bytes, start: valueStart, end: valueEnd });
      if (isArray) expected = comma;
    }
    at = next;
  }
  return isClosed ? found : null;
}

/** Decodes values of JSON, each a record. What is no JSON is passed on too, for the reason why it is none. */
export class JsonValuesDecoder extends OuterDecoder<RecordTextDecoder> {
  constructor(
    lines: RecordTextDecoder,
    private readonly values: JsonValues,
  ) {
    super(lines);
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const { lines, values } = this;
    let at = start;
    lines.beginTurn();
    while (at < end && !builder.full) {
      const from = at;
      const next = values.next(bytes, at, end);
      at = next < 0 ? end : next;
      const { start: unitStart, valueStart, problem } = values;
      for (let i = from; i < unitStart; i++) if (bytes[i] === 0) lines.counters.nulBytes++;
      if (valueStart < 0) continue;
      const valueEnd = next < 0 ? withoutLineEnd(bytes, valueStart, end) : values.valueEnd;
      const text = { bytes, start: valueStart, end: valueEnd };
      // An element is kept with a comma before it, so that it is one when it is decoded again.
      const keep: RejectText = (reason, kept) => {
        const isElement = kept !== undefined && valueStart > unitStart;
        reject(reason, unitStart, valueEnd, isElement ? Buffer.concat([Buffer.of(comma), kept]) : kept);
      };
      if (problem !== null) keep(problem, lines.kept(text));
      else lines.decodeText(text, builder, keep);
      if (lines.turnIsOver) break;
    }
    return at;
  }
}
