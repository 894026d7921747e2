import { assert, jsonDepthMax } from '../../engine/index.js';
import { EscapedTexts, KeyTable } from './escaped-texts.js';
import {
  closeBrace,
  colon,
  comma,
  JsonScanner,
  openBrace,
  openBracket,
  quote,
  tooDeep,
} from './json-scanner.js';
import { expectedAt, skipSpace } from './line-text.js';
import { type JsonKey, jsonKeys, ofLine } from './json-lines.js';
import { objectsOfLine } from './json-values.js';
import type { TextRange } from './line-framing.js';
import { bytesText, Kind, type LineParser, ParsedLine } from './parsed-line.js';

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
  readonly #table: Pick<KeyTable, 'find'>;
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
  readonly #scan = new JsonScanner();

  /**
   * @param names wanted keys, in the order of the `ParsedLine`
   * @param table finds their numbers
   * @param keys what leads to them
   */
  constructor(names: readonly string[], table?: Pick<KeyTable, 'find'>, keys = jsonKeys(names)) {
    this.#keys = keys;
    this.#table = table ?? new KeyTable(keys);
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
    line.repairs = this.#scan.repairs = 0;
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
        line.repairs = this.#scan.repairs;
        return null;
      }
      this.#scan.fail(rest, 'nothing after the object');
    }
    return this.#reason(bytes, start, end);
  }

  several(bytes: Uint8Array, start: number, end: number): readonly TextRange[] | string | null {
    return objectsOfLine(bytes, start, end);
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
    if (start === end || bytes[start] !== openBrace) return this.#scan.fail(start, '"{"');
    let at = skipSpace(bytes, start + 1, end);
    if (at < end && bytes[at] === closeBrace) return at + 1;
    for (;;) {
      if (at === end || bytes[at] !== quote) return this.#scan.fail(at, 'a key in quotation marks');
      const keyEnd = this.#scan.stringEnd(bytes, at + 1, end);
      if (keyEnd < 0) return -1;
      const key = this.#scan.hasEscape
        ? this.#texts.findKey(bytes, at + 1, keyEnd, this.#table, parent)
        : this.#table.find(bytes, at + 1, keyEnd, parent);
      at = skipSpace(bytes, keyEnd + 1, end);
      if (at === end || bytes[at] !== colon) return this.#scan.fail(at, '":"');
      at = this.#member(bytes, skipSpace(bytes, at + 1, end), end, key, depth, line);
      if (at < 0) return -1;
      at = skipSpace(bytes, at, end);
      const next = at < end ? bytes[at]! : 0;
      if (next === closeBrace) return at + 1;
      if (next !== comma) return this.#scan.fail(at, '"," or "}"');
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
      const stringEnd = this.#scan.stringEnd(bytes, start + 1, end);
      if (stringEnd < 0) return -1;
      if (key >= 0) {
        if (this.#scan.hasEscape) this.#texts.keep(bytes, start + 1, stringEnd, key, target);
        else target.set(key, Kind.text, bytes, start + 1, stringEnd);
      }
      return stringEnd + 1;
    }
    let valueEnd: number;
    if (first !== openBrace && first !== openBracket) valueEnd = this.#scan.scalar(bytes, start, end);
    else if (first === openBracket || key < 0 || this.#isParent[key] === 0)
      valueEnd = this.#scan.nested(bytes, start, end, depth);
    else if (depth === jsonDepthMax) valueEnd = this.#scan.fail(start, tooDeep);
    else valueEnd = this.#object(bytes, start, end, key, depth + 1, line);
    if (valueEnd >= 0 && key >= 0) target.set(key, kindOf(bytes, start), bytes, start, valueEnd);
    return valueEnd;
  }

  #reason(bytes: Uint8Array, start: number, end: number): string {
    assert(this.#scan.failedAt >= start, 'the scan failed before the line');
    const at = Math.min(this.#scan.failedAt, end);
    return `is not a JSON object: ${expectedAt(bytes, start, end, at, this.#scan.expected)}`;
  }
}

function kindOf(bytes: Uint8Array, start: number): number {
  const first = bytes[start]!;
  // null, NaN, Infinity and -Infinity
  if (first === 0x6e || first === 0x4e || first === 0x49) return Kind.absent;
  if (first === 0x2d && bytes[start + 1] === 0x49) return Kind.absent;
  return first === 0x2d || (first >= 0x30 && first <= 0x39) ? Kind.number : Kind.other;
}

/** The distinct keys of the object that is a line, which the parser accepts. */
export function jsonKeysOf(bytes: Uint8Array): string[] {
  const keys = new Set<string>();
  const find = (source: Uint8Array, start: number, end: number, parent: number): number => {
    if (parent === ofLine) keys.add(bytesText(source, start, end));
    return -1;
  };
  new JsonLineParser([], { find }).parse(bytes, 0, bytes.length, true, new ParsedLine(0));
  return [...keys];
}
