import { assert, jsonDepthMax } from '../../engine/index.js';
import { byteFlags, EscapedTexts, hexValue, KeyTable } from './escaped-texts.js';
import { expectedAt, skipSpace } from './line-text.js';
import { type JsonKey, jsonKeys, ofLine } from './json-lines.js';
import { Kind, type LineParser, ParsedLine } from './parsed-line.js';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Bytes that end a run of plain string bytes: quotation mark, backslash, and control characters, which JSON forbids. */
const endsRun = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === quote || byte === backslash ? 1 : 0,
);

/** Characters that may follow a backslash, except `u`. */
const isEscape = byteFlags('"\\/bfnrt');

const tooDeep = `at most ${jsonDepthMax} nested values`;

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text));

/**
 * Parses lines that are one JSON object each (RFC 8259, fully validated). The parsed fields are the keys of the object
 * itself, matched exactly. Where the object lacks a key with dots, the key is a path into nested objects: `a.b` is key `b`
 * of the object that is the value of `a`. Of a key that occurs twice in an object, the last value counts. Strings are
 * unescaped; everything else stays as written in the line: numbers with all digits, arrays and objects as their text; null
 * is absent. A line of blanks is blank.
 */
export class JsonLineParser implements LineParser {
  /** The keys of the line's own object, numbered like their fields, then the keys on paths. */
  readonly #keys: readonly JsonKey[];
  readonly #table: KeyTable;
  readonly #fields: number;
  readonly #hasPaths: boolean;
  /** For each key, whether keys are searched in its object. */
  readonly #isParent: Uint8Array;
  /**
   * For each key, the position of its value in the line, of the last one if it occurs twice; -1 where the line lacks it.
   * Used only with paths.
   */
  readonly #seenAt: Int32Array;
  /** The values of keys on paths, by key number. */
  readonly #onPaths: ParsedLine;
  readonly #texts = new EscapedTexts();
  /** Whether the string that was scanned last has a backslash. */
  #hasEscape = false;
  /** What was expected at the position where the scan failed. */
  #expected = '';
  #failedAt = 0;
  /** For each open bracket of a nested value, whether it is a brace. */
  readonly #open = new Uint8Array(jsonDepthMax);

  /** @param names wanted keys, in the order of the `ParsedLine` */
  constructor(names: readonly string[]) {
    const keys = jsonKeys(names);
    this.#keys = keys;
    this.#table = new KeyTable(keys);
    this.#fields = names.length;
    this.#hasPaths = keys.length > names.length;
    this.#isParent = new Uint8Array(keys.length);
    for (const { parent } of keys) if (parent !== ofLine) this.#isParent[parent] = 1;
    this.#seenAt = new Int32Array(keys.length);
    this.#onPaths = new ParsedLine(keys.length);
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return skipSpace(bytes, start, end) === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.#fields);
    line.hasReplaced = false;
    this.#texts.clear();
    if (this.#hasPaths) {
      this.#seenAt.fill(-1);
      this.#onPaths.hasReplaced = false;
    }
    const at = this.#object(bytes, skipSpace(bytes, start, end), end, ofLine, 0, line);
    if (at >= 0) {
      const rest = skipSpace(bytes, at, end);
      if (rest === end) {
        if (this.#hasPaths) this.#followPaths(line);
        return null;
      }
      this.#fail(rest, 'nothing after the object');
    }
    return this.#reason(bytes, start, end);
  }

  /** Sets each field that the line's own object lacks to the value at the end of its path. */
  #followPaths(line: ParsedLine): void {
    const keys = this.#keys;
    const seenAt = this.#seenAt;
    for (let number = this.#fields; number < keys.length; number++) {
      const { parent, field } = keys[number]!;
      // A value that precedes its parent's value belonged to an earlier occurrence of the parent key.
      const isGone = parent !== ofLine && (seenAt[parent]! < 0 || seenAt[number]! < seenAt[parent]!);
      if (isGone) seenAt[number] = -1;
      if (seenAt[number]! >= 0 && field >= 0 && seenAt[field]! < 0)
        line.setFrom(field, this.#onPaths, number);
    }
  }

  /**
   * Parses an object in which keys are searched: the line's own, or the value of key `parent`, which is nested in `depth`
   * others. Returns the position after it, or -1.
   */
  #object(
    bytes: Uint8Array,
    start: number,
    end: number,
    parent: number,
    depth: number,
    line: ParsedLine,
  ): number {
    if (start === end || bytes[start] !== openBrace) return this.#fail(start, '"{"');
    let at = skipSpace(bytes, start + 1, end);
    if (at < end && bytes[at] === closeBrace) return at + 1;
    for (;;) {
      if (at === end || bytes[at] !== quote) return this.#fail(at, 'a key in quotation marks');
      const keyEnd = this.#stringEnd(bytes, at + 1, end);
      if (keyEnd < 0) return -1;
      const key = this.#hasEscape
        ? this.#texts.findKey(bytes, at + 1, keyEnd, this.#table, parent)
        : this.#table.find(bytes, at + 1, keyEnd, parent);
      at = skipSpace(bytes, keyEnd + 1, end);
      if (at === end || bytes[at] !== colon) return this.#fail(at, '":"');
      at = this.#member(bytes, skipSpace(bytes, at + 1, end), end, key, depth, line);
      if (at < 0) return -1;
      at = skipSpace(bytes, at, end);
      const next = at < end ? bytes[at]! : 0;
      if (next === closeBrace) return at + 1;
      if (next !== comma) return this.#fail(at, '"," or "}"');
      at = skipSpace(bytes, at + 1, end);
    }
  }

  /** Parses the value of a key, and sets it where `key` is one of those searched. Returns the position after it, or -1. */
  #member(
    bytes: Uint8Array,
    start: number,
    end: number,
    key: number,
    depth: number,
    line: ParsedLine,
  ): number {
    const first = start < end ? bytes[start]! : 0;
    let target = line;
    if (this.#hasPaths && key >= 0) {
      this.#seenAt[key] = start;
      if (key >= this.#fields) target = this.#onPaths;
    }
    if (first === quote) {
      const stringEnd = this.#stringEnd(bytes, start + 1, end);
      if (stringEnd < 0) return -1;
      if (key >= 0) {
        if (this.#hasEscape) this.#texts.keep(bytes, start + 1, stringEnd, key, target);
        else target.set(key, Kind.text, bytes, start + 1, stringEnd);
      }
      return stringEnd + 1;
    }
    let valueEnd: number;
    if (first !== openBrace && first !== openBracket) valueEnd = this.#scalar(bytes, start, end);
    else if (first === openBracket || key < 0 || this.#isParent[key] === 0)
      valueEnd = this.#nested(bytes, start, end, depth);
    else if (depth === jsonDepthMax) valueEnd = this.#fail(start, tooDeep);
    else valueEnd = this.#object(bytes, start, end, key, depth + 1, line);
    if (valueEnd >= 0 && key >= 0) target.set(key, kindOf(first), bytes, start, valueEnd);
    return valueEnd;
  }

  /** Position of the closing quotation mark of the string whose text begins at `start`, or -1. */
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
        if (hexValue(bytes, at + 2, end, 4) < 0) return this.#fail(at + 2, 'four hexadecimal digits');
        at += 6;
      } else if (isEscape[letter] === 1) {
        at += 2;
      } else {
        return this.#fail(at + 1, 'one of "\\/bfnrtu after a backslash');
      }
    }
  }

  /** Parses a number or a literal. Returns the position after it, or -1. */
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
    if (bytes[at] === 0x30 && digits > at + 1) return this.#fail(at + 1, 'no digit after a leading zero');
    at = digits;
    if (at < end && bytes[at] === 0x2e) {
      const fraction = skipDigits(bytes, at + 1, end);
      if (fraction === at + 1) return this.#fail(fraction, 'a digit after the point');
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

  /** Scans an object or array that is nested in `outer` others besides the line's. Returns the position after it, or -1. */
  #nested(bytes: Uint8Array, start: number, end: number, outer: number): number {
    let depth = outer;
    let at = start;
    for (;;) {
      const first = at < end ? bytes[at]! : 0;
      if (first === openBrace || first === openBracket) {
        if (depth === jsonDepthMax) return this.#fail(at, tooDeep);
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
        if (isObject) at = this.#key(bytes, at, end);
      } else {
        return this.#fail(at, isObject ? '"," or "}"' : '"," or "]"');
      }
      this.#depth = depth;
      return at;
    }
  }

  /** Scans a key of a nested object and its colon. Returns the position of the value, or -1. */
  #key(bytes: Uint8Array, start: number, end: number): number {
    if (start === end || bytes[start] !== quote) return this.#fail(start, 'a key in quotation marks');
    const keyEnd = this.#stringEnd(bytes, start + 1, end);
    if (keyEnd < 0) return -1;
    const at = skipSpace(bytes, keyEnd + 1, end);
    if (at === end || bytes[at] !== colon) return this.#fail(at, '":"');
    return skipSpace(bytes, at + 1, end);
  }

  #fail(at: number, expected: string): -1 {
    this.#failedAt = at;
    this.#expected = expected;
    return -1;
  }

  #reason(bytes: Uint8Array, start: number, end: number): string {
    assert(this.#failedAt >= start, 'the scan failed before the line');
    const at = Math.min(this.#failedAt, end);
    return `is not a JSON object: ${expectedAt(bytes, start, end, at, this.#expected)}`;
  }
}

function kindOf(first: number): number {
  if (first === 0x6e) return Kind.absent;
  return first === 0x2d || (first >= 0x30 && first <= 0x39) ? Kind.number : Kind.other;
}

function skipDigits(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
  return at;
}
