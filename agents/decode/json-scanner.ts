import { jsonDepthMax } from '../../engine/index.js';
import { byteFlags, hexValue } from './escaped-texts.js';
import { skipSpace } from './line-text.js';

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
const backslash = 0x5c;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;

/** Bytes that end a run of plain string bytes: quotation mark, backslash, and control characters, which JSON forbids. */
const endsRun = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === quote || byte === backslash ? 1 : 0,
);

/** Characters that may follow a backslash, except `u` and `x`. */
const isEscape = byteFlags('"\\/bfnrt');

export const tooDeep = `at most ${jsonDepthMax} nested values`;

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text));

/** Numbers that JSON does not have, but programs write. */
const notNumbers = ['NaN', 'Infinity', '-Infinity'].map((text) => Buffer.from(text));

/**
 * Scans values of JSON (RFC 8259, fully validated). Two mistakes of programs that write JSON are accepted and counted: `\xhh`
 * in a string, and numbers that are not finite. Methods return the position after what they scan, or -1 where that is invalid or
 * ends at `end`: then `failedAt` tells where, and `expected` what should be there.
 */
export class JsonScanner {
  /** Whether the string that was scanned last has a backslash. */
  hasEscape = false;
  /** What was expected at the position where the scan failed. */
  expected = '';
  failedAt = 0;
  /** Accepted mistakes; the caller resets it. */
  repairs = 0;
  /** For each open bracket of a nested value, whether it is a brace. */
  readonly #open = new Uint8Array(jsonDepthMax);

  /** Scans any value that is nested in `outer` others. */
  value(bytes: Uint8Array, start: number, end: number, outer: number): number {
    const first = start < end ? bytes[start]! : 0;
    if (first === openBrace || first === openBracket) return this.nested(bytes, start, end, outer);
    if (first !== quote) return this.scalar(bytes, start, end);
    const close = this.stringEnd(bytes, start + 1, end);
    return close < 0 ? -1 : close + 1;
  }

  /** Position of the closing quotation mark of the string whose text begins at `start`, or -1. */
  stringEnd(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    this.hasEscape = false;
    for (;;) {
      while (at < end && endsRun[bytes[at]!] === 0) at++;
      if (at >= end) return this.fail(end, 'the end of the string, a quotation mark');
      if (bytes[at] === quote) return at;
      if (bytes[at] !== backslash) return this.fail(at, 'no control character in a string');
      this.hasEscape = true;
      const letter = at + 1 < end ? bytes[at + 1]! : 0;
      if (letter === 0x75) {
        if (hexValue(bytes, at + 2, end, 4) < 0) return this.fail(at + 2, 'four hexadecimal digits');
        at += 6;
      } else if (isEscape[letter] === 1) {
        at += 2;
      } else if (letter === 0x78) {
        if (hexValue(bytes, at + 2, end, 2) < 0) return this.fail(at + 2, 'two hexadecimal digits');
        this.repairs++;
        at += 4;
      } else {
        return this.fail(at + 1, 'one of "\\/bfnrtu after a backslash');
      }
    }
  }

  /** Scans a number or a literal. */
  scalar(bytes: Uint8Array, start: number, end: number): number {
    const first = start < end ? bytes[start]! : 0;
    const isMinus = first === 0x2d && bytes[start + 1] !== notNumbers[1]![0];
    if (isMinus || (first >= 0x30 && first <= 0x39)) return this.#number(bytes, start, end);
    const isLiteral = literals.find((literal) => literal[0] === first);
    const word = isLiteral ?? notNumbers.find((each) => each[0] === first);
    if (word === undefined) return this.fail(start, 'a value');
    for (let i = 1; i < word.length; i++)
      if (start + i >= end || bytes[start + i] !== word[i]) return this.fail(start, `"${word.toString()}"`);
    if (isLiteral === undefined) this.repairs++;
    return start + word.length;
  }

  #number(bytes: Uint8Array, start: number, end: number): number {
    let at = bytes[start] === 0x2d ? start + 1 : start;
    const digits = skipDigits(bytes, at, end);
    if (digits === at) return this.fail(at, 'a digit');
    if (bytes[at] === 0x30 && digits > at + 1) return this.fail(at + 1, 'no digit after a leading zero');
    at = digits;
    if (at < end && bytes[at] === 0x2e) {
      const fraction = skipDigits(bytes, at + 1, end);
      if (fraction === at + 1) return this.fail(fraction, 'a digit after the point');
      at = fraction;
    }
    if (at < end && (bytes[at]! | 0x20) === 0x65) {
      const sign = at + 1 < end ? bytes[at + 1]! : 0;
      const from = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
      const exponent = skipDigits(bytes, from, end);
      if (exponent === from) return this.fail(from, 'a digit of the exponent');
      at = exponent;
    }
    return at;
  }

  /** Scans an object or array that is nested in `outer` others besides the line's. Returns the position after it, or -1. */
  nested(bytes: Uint8Array, start: number, end: number, outer: number): number {
    let depth = outer;
    let at = start;
    for (;;) {
      const first = at < end ? bytes[at]! : 0;
      if (first === openBrace || first === openBracket) {
        if (depth === jsonDepthMax) return this.fail(at, tooDeep);
        this.#open[depth++] = first === openBrace ? 1 : 0;
        at = skipSpace(bytes, at + 1, end);
        const isEmpty = at < end && bytes[at] === (first === openBrace ? closeBrace : closeBracket);
        if (!isEmpty) {
          if (first === openBrace) at = this.key(bytes, at, end);
          if (at < 0) return -1;
          continue;
        }
      } else {
        at = first === quote ? this.stringEnd(bytes, at + 1, end) : this.scalar(bytes, at, end);
        if (at < 0) return -1;
        if (first === quote) at++;
        at = skipSpace(bytes, at, end);
      }
      at = this.#afterValue(bytes, at, end, depth, outer);
      if (at < 0) return -1;
      depth = this.#depth;
      if (depth === outer) return at;
    }
  }

  /** Number of open brackets where `#afterValue` stopped. */
  #depth = 0;

  /**
   * Scans what follows a value: closing brackets and a comma. Returns the position of the next value, or after the bracket
   * that leaves only `outer` open; or -1.
   */
  #afterValue(bytes: Uint8Array, start: number, end: number, open: number, outer: number): number {
    let at = start;
    for (let depth = open; ;) {
      const isObject = this.#open[depth - 1] === 1;
      const next = at < end ? bytes[at]! : 0;
      if (next === (isObject ? closeBrace : closeBracket)) {
        depth--;
        at++;
        if (depth > outer) {
          at = skipSpace(bytes, at, end);
          continue;
        }
      } else if (next === comma) {
        at = skipSpace(bytes, at + 1, end);
        if (isObject) at = this.key(bytes, at, end);
      } else {
        return this.fail(at, isObject ? '"," or "}"' : '"," or "]"');
      }
      this.#depth = depth;
      return at;
    }
  }

  /** Scans a key of a nested object and its colon. Returns the position of the value, or -1. */
  key(bytes: Uint8Array, start: number, end: number): number {
    if (start === end || bytes[start] !== quote) return this.fail(start, 'a key in quotation marks');
    const keyEnd = this.stringEnd(bytes, start + 1, end);
    if (keyEnd < 0) return -1;
    const at = skipSpace(bytes, keyEnd + 1, end);
    if (at === end || bytes[at] !== colon) return this.fail(at, '":"');
    return skipSpace(bytes, at + 1, end);
  }

  fail(at: number, expected: string): -1 {
    this.failedAt = at;
    this.expected = expected;
    return -1;
  }
}

function skipDigits(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  return at;
}
