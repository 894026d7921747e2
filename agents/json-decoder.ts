import { assert } from '../engine/assert.js';
import { jsonDepthMax } from '../engine/limits.js';
import { KeyTable } from './key-table.js';
import { Kind, type LineParser, type ParsedLine } from './parsed-line.js';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Bytes that end the plain run of a string: quotation mark, backslash, and what JSON forbids in it. */
const endsRun = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === quote || byte === backslash ? 1 : 0,
);

/** For the letter behind a backslash what it stands for; 0 for those that may not stand there, and for `u`. */
const escaped = new Uint8Array(256);
for (const [letter, character] of Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' })) {
  escaped[letter.charCodeAt(0)] = character.charCodeAt(0);
}
for (const letter of '"\\/') escaped[letter.charCodeAt(0)] = letter.charCodeAt(0);

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text));

/**
 * Parses lines that are one JSON object each (RFC 8259, validated in full). Parsed fields are the keys of the object
 * itself, matched exactly; of a key that comes twice the last one counts. Strings are unescaped, everything else stays as it
 * stands in the line: numbers with all digits, arrays and objects as their text; null is absent. A line of blanks is blank.
 */
export class JsonLineParser implements LineParser {
  readonly #keys: KeyTable;
  readonly #fields: number;
  /** Unescaped strings of the line. */
  #scratch = new Uint8Array(4096);
  #scratchUsed = 0;
  /** Whether the string that was scanned last has a backslash. */
  #hasEscape = false;
  /** What was expected where the scan failed. */
  #expected = '';
  #failedAt = 0;
  /** For each open bracket of a nested value whether it is a brace. */
  readonly #open = new Uint8Array(jsonDepthMax);

  /** `names` are the keys wanted, in the order of the `ParsedLine`. */
  constructor(names: readonly string[]) {
    this.#keys = new KeyTable(names);
    this.#fields = names.length;
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return skipSpace(bytes, start, end) === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.#fields);
    line.hasReplaced = false;
    this.#scratchUsed = 0;
    const at = this.#object(bytes, skipSpace(bytes, start, end), end, line);
    if (at >= 0) {
      const rest = skipSpace(bytes, at, end);
      if (rest === end) return null;
      this.#fail(rest, 'nothing behind the object');
    }
    return this.#reason(bytes, start, end);
  }

  /** The line's object from `at` on. Returns the position behind it, or -1. */
  #object(bytes: Uint8Array, start: number, end: number, line: ParsedLine): number {
    if (start === end || bytes[start] !== openBrace) return this.#fail(start, '"{"');
    let at = skipSpace(bytes, start + 1, end);
    if (at < end && bytes[at] === closeBrace) return at + 1;
    for (;;) {
      if (at === end || bytes[at] !== quote) return this.#fail(at, 'a key in quotation marks');
      const keyEnd = this.#stringEnd(bytes, at + 1, end);
      if (keyEnd < 0) return -1;
      const field = this.#hasEscape
        ? this.#findEscapedKey(bytes, at + 1, keyEnd)
        : this.#keys.find(bytes, at + 1, keyEnd);
      at = skipSpace(bytes, keyEnd + 1, end);
      if (at === end || bytes[at] !== colon) return this.#fail(at, '":"');
      at = this.#member(bytes, skipSpace(bytes, at + 1, end), end, field, line);
      if (at < 0) return -1;
      at = skipSpace(bytes, at, end);
      const next = at < end ? bytes[at]! : 0;
      if (next === closeBrace) return at + 1;
      if (next !== comma) return this.#fail(at, '"," or "}"');
      at = skipSpace(bytes, at + 1, end);
    }
  }

  /** The value of a key, kept when `field` is one of the line's. Returns the position behind it, or -1. */
  #member(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): number {
    const first = start < end ? bytes[start]! : 0;
    if (first === quote) {
      const stringEnd = this.#stringEnd(bytes, start + 1, end);
      if (stringEnd < 0) return -1;
      if (field >= 0) {
        if (this.#hasEscape) this.#keepEscaped(bytes, start + 1, stringEnd, field, line);
        else line.set(field, Kind.text, bytes, start + 1, stringEnd);
      }
      return stringEnd + 1;
    }
    const valueEnd =
      first === openBrace || first === openBracket
        ? this.#nested(bytes, start, end)
        : this.#scalar(bytes, start, end);
    if (valueEnd >= 0 && field >= 0) line.set(field, kindOf(first), bytes, start, valueEnd);
    return valueEnd;
  }

  /** Position of the quotation mark that ends the string whose text begins at `start`, or -1. */
  #stringEnd(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    this.#hasEscape = false;
    for (;;) {
      while (at < end && endsRun[bytes[at]!] === 0) at++;
      if (at >= end) return this.#fail(end, 'the end of the string, a quotation mark');
      if (bytes[at] === quote) return at;
      if (bytes[at] !== backslash) return this.#fail(at, 'no control character in a string');
      this.#hasEscape = true;
      const letter = at + 1 < end ? bytes[at + 1]! : 0;
      if (letter === 0x75) {
        if (hexValue(bytes, at + 2, end) < 0) return this.#fail(at + 2, 'four hexadecimal digits');
        at += 6;
      } else if (escaped[letter] !== 0) {
        at += 2;
      } else {
        return this.#fail(at + 1, 'one of "\\/bfnrtu behind a backslash');
      }
    }
  }

  /** A number or a literal. Returns the position behind it, or -1. */
  #scalar(bytes: Uint8Array, start: number, end: number): number {
    const first = start < end ? bytes[start]! : 0;
    if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return this.#number(bytes, start, end);
    for (const literal of literals) {
      if (first !== literal[0]) continue;
      for (let i = 1; i < literal.length; i++) {
        if (start + i >= end || bytes[start + i] !== literal[i]) {
          return this.#fail(start, `"${literal.toString()}"`);
        }
      }
      return start + literal.length;
    }
    return this.#fail(start, 'a value');
  }

  #number(bytes: Uint8Array, start: number, end: number): number {
    let at = bytes[start] === 0x2d ? start + 1 : start;
    const digits = skipDigits(bytes, at, end);
    if (digits === at) return this.#fail(at, 'a digit');
    if (bytes[at] === 0x30 && digits > at + 1) return this.#fail(at + 1, 'no digit behind a leading zero');
    at = digits;
    if (at < end && bytes[at] === 0x2e) {
      const fraction = skipDigits(bytes, at + 1, end);
      if (fraction === at + 1) return this.#fail(fraction, 'a digit behind the point');
      at = fraction;
    }
    if (at < end && (bytes[at]! | 0x20) === 0x65) {
      const sign = at + 1 < end ? bytes[at + 1]! : 0;
      const from = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
      const exponent = skipDigits(bytes, from, end);
      if (exponent === from) return this.#fail(from, 'a digit of the exponent');
      at = exponent;
    }
    return at;
  }

  /** An object or an array inside the line's object. Returns the position behind it, or -1. */
  #nested(bytes: Uint8Array, start: number, end: number): number {
    let depth = 0;
    let at = start;
    for (;;) {
      const first = at < end ? bytes[at]! : 0;
      if (first === openBrace || first === openBracket) {
        if (depth === jsonDepthMax) return this.#fail(at, `no more than ${jsonDepthMax} nested values`);
        this.#open[depth++] = first === openBrace ? 1 : 0;
        at = skipSpace(bytes, at + 1, end);
        const isEmpty = at < end && bytes[at] === (first === openBrace ? closeBrace : closeBracket);
        if (!isEmpty) {
          if (first === openBrace) at = this.#key(bytes, at, end);
          if (at < 0) return -1;
          continue;
        }
      } else {
        at = first === quote ? this.#stringEnd(bytes, at + 1, end) : this.#scalar(bytes, at, end);
        if (at < 0) return -1;
        if (first === quote) at++;
        at = skipSpace(bytes, at, end);
      }
      at = this.#afterValue(bytes, at, end, depth);
      if (at < 0) return -1;
      depth = this.#depth;
      if (depth === 0) return at;
    }
  }

  /** Brackets that are open where `#afterValue` stopped. */
  #depth = 0;

  /** Closes what closes at `at`; then the position of the next value, or behind the outermost bracket; or -1. */
  #afterValue(bytes: Uint8Array, start: number, end: number, open: number): number {
    let at = start;
    for (let depth = open; ;) {
      const isObject = this.#open[depth - 1] === 1;
      const next = at < end ? bytes[at]! : 0;
      if (next === (isObject ? closeBrace : closeBracket)) {
        depth--;
        at++;
        if (depth > 0) {
          at = skipSpace(bytes, at, end);
          continue;
        }
      } else if (next === comma) {
        at = skipSpace(bytes, at + 1, end);
        if (isObject) at = this.#key(bytes, at, end);
      } else {
        return this.#fail(at, isObject ? '"," or "}"' : '"," or "]"');
      }
      this.#depth = depth;
      return at;
    }
  }

  /** A key of a nested object and its colon. Returns the position of the value, or -1. */
  #key(bytes: Uint8Array, start: number, end: number): number {
    if (start === end || bytes[start] !== quote) return this.#fail(start, 'a key in quotation marks');
    const keyEnd = this.#stringEnd(bytes, start + 1, end);
    if (keyEnd < 0) return -1;
    const at = skipSpace(bytes, keyEnd + 1, end);
    if (at === end || bytes[at] !== colon) return this.#fail(at, '":"');
    return skipSpace(bytes, at + 1, end);
  }

  #findEscapedKey(bytes: Uint8Array, start: number, end: number): number {
    this.#reserve(end - start);
    const used = this.#scratchUsed;
    this.#unescape(bytes, start, end);
    const field = this.#keys.find(this.#scratch, used, this.#scratchUsed);
    this.#scratchUsed = used;
    return field;
  }

  #keepEscaped(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): void {
    this.#reserve(end - start);
    const from = this.#scratchUsed;
    const replaced = this.#unescape(bytes, start, end);
    line.set(field, Kind.text, this.#scratch, from, this.#scratchUsed);
    if (replaced > 0) line.countReplaced(field, replaced);
  }

  /** Appends a valid string's text to the scratch bytes, which have room; returns how many halves of surrogate pairs became U+FFFD. */
  #unescape(bytes: Uint8Array, start: number, end: number): number {
    const target = this.#scratch;
    let used = this.#scratchUsed;
    let replaced = 0;
    for (let at = start; at < end;) {
      const byte = bytes[at]!;
      if (byte !== backslash) {
        target[used++] = byte;
        at++;
        continue;
      }
      const letter = bytes[at + 1]!;
      if (letter !== 0x75) {
        target[used++] = escaped[letter]!;
        at += 2;
        continue;
      }
      let code = hexValue(bytes, at + 2, end);
      at += 6;
      if (code >= 0xd800 && code <= 0xdfff) {
        const low =
          code < 0xdc00 && bytes[at] === backslash && bytes[at + 1] === 0x75
            ? hexValue(bytes, at + 2, end)
            : -1;
        if (low >= 0xdc00 && low <= 0xdfff) {
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          at += 6;
        } else {
          code = 0xfffd;
          replaced++;
        }
      }
      used = writeCodePoint(target, used, code);
    }
    this.#scratchUsed = used;
    return replaced;
  }

  /** Makes room behind the used scratch bytes; fields of the line keep the array that they point into. */
  #reserve(bytes: number): void {
    if (this.#scratchUsed + bytes <= this.#scratch.length) return;
    this.#scratch = new Uint8Array(2 * (this.#scratch.length + bytes));
    this.#scratchUsed = 0;
  }

  #fail(at: number, expected: string): -1 {
    this.#failedAt = at;
    this.#expected = expected;
    return -1;
  }

  #reason(bytes: Uint8Array, start: number, end: number): string {
    assert(this.#failedAt >= start, 'the scan failed before the line');
    const at = Math.min(this.#failedAt, end);
    const column = Array.from(Buffer.from(bytes.subarray(start, at)).toString()).length + 1;
    return `is not a JSON object: at column ${column}${at === end ? ', its end,' : ''} expected ${this.#expected}`;
  }
}

function kindOf(first: number): number {
  if (first === 0x6e) return Kind.absent;
  return first === 0x2d || (first >= 0x30 && first <= 0x39) ? Kind.number : Kind.other;
}

function skipSpace(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d)) break;
    at++;
  }
  return at;
}

function skipDigits(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  return at;
}

/** The value of four hexadecimal digits, or -1. */
function hexValue(bytes: Uint8Array, start: number, end: number): number {
  if (start + 4 > end) return -1;
  let value = 0;
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at]!;
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) value = value * 16 + letter - 0x57;
    else return -1;
  }
  return value;
}

/** Writes a code point as UTF-8; returns the position behind it. */
function writeCodePoint(target: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    target[at] = code;
    return at + 1;
  }
  if (code < 0x800) {
    target[at] = 0xc0 | (code >> 6);
    target[at + 1] = 0x80 | (code & 0x3f);
    return at + 2;
  }
  if (code < 0x10000) {
    target[at] = 0xe0 | (code >> 12);
    target[at + 1] = 0x80 | ((code >> 6) & 0x3f);
    target[at + 2] = 0x80 | (code & 0x3f);
    return at + 3;
  }
  target[at] = 0xf0 | (code >> 18);
  target[at + 1] = 0x80 | ((code >> 12) & 0x3f);
  target[at + 2] = 0x80 | ((code >> 6) & 0x3f);
  target[at + 3] = 0x80 | (code & 0x3f);
  return at + 4;
}
