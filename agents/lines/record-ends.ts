import { isUtf8 } from 'node:buffer';
import { assert, repairUtf8 } from '../../engine/index.js';
import type { LineFormat, Multiline } from '../definition/definition.js';
import { LinePattern, startBytesMax, startInstructionsMax } from '../patterns/line-pattern.js';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Offset of the first byte of a line's text. NULs before it are no text: a file has them where its program writes on behind
 * what was truncated, or where a power cut took the content. A byte order mark before it was the beginning of another file.
 */
export function textStart(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; ;) {
    while (at < end && bytes[at] === 0) at++;
    const isMark = at + 3 <= end && bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf;
    if (!isMark) return at;
    at += 3;
  }
}

/** Finds the ends of records in content. In all calls a record begins at `start`. */
export interface RecordEnds {
  /**
   * Milliseconds without new data after which the last record is complete although nothing follows that shows it; null where
   * its line end shows it.
   */
  readonly timeoutMs: number | null;
  /**
   * End of the last record of bytes[start, end) that is surely complete; `start` where there is none. The last line may lack
   * its line end.
   */
  wholeTo(bytes: Uint8Array, start: number, end: number): number;
}

/** Each line is a record. */
export const singleLines: RecordEnds = {
  timeoutMs: null,
  wholeTo: (bytes, start, end) => start + bytes.subarray(start, end).lastIndexOf(lineFeed) + 1,
};

/**
 * Records of several lines. A record begins with a line that matches the pattern, at the beginning of the content, or where
 * the record before has reached its limits. So lines without a beginning are kept together too, nothing is left out, and the
 * records of a content do not depend on how it is cut into pieces.
 */
export class MultilineRecords implements RecordEnds {
  /** Number of lines of the record that `recordEnd` found last. */
  lines = 0;
  readonly timeoutMs: number;
  readonly #start: LinePattern;
  readonly #linesMax: number;
  readonly #bytesMax: number;

  /** Throws `invalid` for an invalid pattern. */
  constructor({ start, timeoutMs, linesMax, bytesMax }: Multiline) {
    this.timeoutMs = timeoutMs;
    this.#start = new LinePattern(start, new Set(), startInstructionsMax);
    this.#linesMax = linesMax;
    this.#bytesMax = bytesMax;
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const content = bytes.subarray(0, end);
    const linesEnd = singleLines.wholeTo(content, start, end);
    let from = this.#lastStart(content, start, linesEnd);
    for (;;) {
      const next = this.#find(content, from, end, linesEnd, false);
      if (next < 0) return from;
      from = next;
    }
  }

  /**
   * End of the record that begins at `from`; at most `end`, which must end a line or the content. `isText` says that the
   * bytes are known to be UTF-8.
   */
  recordEnd(bytes: Uint8Array, from: number, end: number, isText: boolean): number {
    const found = this.#find(bytes, from, end, end, isText);
    return found < 0 ? end : found;
  }

  /** Whether a line begins a record. bytes[start, end) is the line without its line feed. */
  isStart(bytes: Uint8Array, start: number, end: number, isText: boolean): boolean {
    const lineEnd = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    const from = textStart(bytes, start, lineEnd);
    const textEnd = firstBytesEnd(bytes, from, lineEnd);
    if (isText || isUtf8(bytes.subarray(from, textEnd))) return this.#matches(bytes, from, textEnd);
    const repaired = repairUtf8(bytes, from, textEnd).bytes;
    return this.#matches(repaired, 0, repaired.length);
  }

  #matches(text: Uint8Array, start: number, end: number): boolean {
    const matched = this.#start.match(text, start, end);
    assert(matched !== undefined, 'the pattern decides for so few bytes');
    return matched;
  }

  /** End of the record that began at `from`, if it ends before `end`; else -1. Lines up to `linesEnd` are complete. */
  #find(bytes: Uint8Array, from: number, end: number, linesEnd: number, isText: boolean): number {
    let at = from;
    for (let lines = 0; ; lines++) {
      this.lines = lines;
      if (lines === this.#linesMax) return at;
      const feed = bytes.indexOf(lineFeed, at);
      const lineEnd = feed < 0 || feed >= end ? end : feed;
      if (lines > 0) {
        if (lineEnd - from > this.#bytesMax) return at;
        if (at < linesEnd && this.isStart(bytes, at, lineEnd, isText)) return at;
      }
      if (lineEnd === end) {
        if (end > at) this.lines++;
        return -1;
      }
      at = lineEnd + 1;
    }
  }

  /** Beginning of the last complete line of bytes[start, linesEnd) that begins a record; `start` where there is none. */
  #lastStart(bytes: Uint8Array, start: number, linesEnd: number): number {
    for (let lineEnd = linesEnd - 1; lineEnd > start;) {
      const lineStart = start + bytes.subarray(start, lineEnd).lastIndexOf(lineFeed) + 1;
      if (lineStart === start || this.isStart(bytes, lineStart, lineEnd, false)) return lineStart;
      lineEnd = lineStart - 1;
    }
    return start;
  }
}

/** End of the bytes that `multiline.start` is matched against. It does not cut a character. */
function firstBytesEnd(bytes: Uint8Array, start: number, end: number): number {
  if (end - start <= startBytesMax) return end;
  let at = start + startBytesMax;
  // A character has at most three bytes after its first.
  for (let back = 0; back < 3 && (bytes[at]! & 0xc0) === 0x80; back++) at--;
  return at;
}

/** How an agent's lines form records. */
export function recordEndsOf(lines: LineFormat | undefined): RecordEnds {
  return lines?.multiline === undefined ? singleLines : new MultilineRecords(lines.multiline);
}

/** A text: bytes[start, end). */
export interface TextRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Joins the lines of a record by `\n`: removes each `\r` before a line feed, and empty lines at the beginning and the end. */
export function joinLines(bytes: Uint8Array, from: number, to: number): TextRange {
  let start = from;
  for (let next = emptyLineEnd(bytes, start, to); next > start; next = emptyLineEnd(bytes, start, to)) {
    start = next;
  }
  let end = to;
  if (end > start && bytes[end - 1] === carriageReturn) end--;
  while (end > start && bytes[end - 1] === lineFeed) {
    end--;
    if (end > start && bytes[end - 1] === carriageReturn) end--;
  }
  const text = bytes.subarray(start, end);
  return text.includes(carriageReturn) ? withoutReturns(text) : { bytes, start, end };
}

/** End of the empty line that begins at `at`; `at` where there is none. */
function emptyLineEnd(bytes: Uint8Array, at: number, end: number): number {
  const feed = at < end && bytes[at] === carriageReturn ? at + 1 : at;
  return feed < end && bytes[feed] === lineFeed ? feed + 1 : at;
}

function withoutReturns(text: Uint8Array): TextRange {
  const bytes = new Uint8Array(text.length);
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== carriageReturn || text[i + 1] !== lineFeed) bytes[end++] = text[i]!;
  }
  return { bytes, start: 0, end };
}
