import { expectedAt, hexValue, pairedCode, writeCodePoint } from './json-decoder.js';
import { KeyTable } from './key-table.js';
import { ofLine } from '../lines/json-keys.js';
import { bytesText, Kind, type LineParser, ParsedLine } from './parsed-line.js';

const quote = 0x22;
const equals = 0x3d;
const backslash = 0x5c;

/** Why lines of words alone are rejected. */
export const noPairReason = 'is not logfmt: it has no key=value pair';

/** Bytes between pairs: blank, tab and line ends. */
const isBlank = byteFlags(' \t\r\n');
const endsKey = byteFlags(' \t\r\n="');
const endsQuotedRun = byteFlags('"\\');

/** The value of a key that stands alone. */
const trueText = Buffer.from('true');

/** For the letter behind a backslash what it stands for; 0 for those that stand for nothing or for a number. */
const escaped = new Uint8Array(256);
for (const [letter, code] of Object.entries({ a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11 })) {
  escaped[letter.charCodeAt(0)] = code;
}
for (const letter of '"\\/\'') escaped[letter.charCodeAt(0)] = letter.charCodeAt(0);

/** Letters behind which the number of a character stands, and its hexadecimal digits. */
const digitsBehind = new Uint8Array(256);
for (const [letter, digits] of Object.entries({ x: 2, u: 4, U: 8 })) {
  digitsBehind[letter.charCodeAt(0)] = digits;
}

/**
 * Parses lines of logfmt: `key=value`, `key="text in quotation marks"`, and `key` alone, whose value is `true`, with blanks between.
 * A value without quotation marks goes up to the next blank, and may be empty. In quotation marks the escapes of Go and JSON are
 * resolved; a backslash before anything else stands for itself. Keys are matched exactly; of one that comes twice the last one
 * counts. A line without `=` is none, since it is most likely a sentence. A line of blanks is blank.
 */
export class LogfmtLineParser implements LineParser {
  readonly #fields: number;
  readonly #table: Pick<KeyTable, 'find'>;
  /** Resolved values of the line; they are no longer than what they are made of. */
  #scratch = new Uint8Array(4096);
  #scratchUsed = 0;

  /** `names` are the keys wanted, in the order of the `ParsedLine`; `table` finds their numbers. */
  constructor(names: readonly string[], table?: Pick<KeyTable, 'find'>) {
    this.#fields = names.length;
    this.#table = table ?? new KeyTable(names.map((name) => ({ name, parent: ofLine })));
  }

  isBlank(bytes: Uint8Array, start: number, end: number): boolean {
    return skipBlanks(bytes, start, end) === end;
  }

  parse(bytes: Uint8Array, start: number, end: number, _isText: boolean, line: ParsedLine): string | null {
    line.kinds.fill(Kind.absent, 0, this.#fields);
    line.hasReplaced = false;
    this.#scratchUsed = 0;
    if (this.#scratch.length < end - start) this.#scratch = new Uint8Array(2 * (end - start));
    const fail = (at: number, expected: string): string =>
      `is not logfmt: ${expectedAt(bytes, start, end, at, expected)}`;
    let hasPair = false;
    let at = skipBlanks(bytes, start, end);
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
        if (at < end && isBlank[bytes[at]!] === 0) return fail(at, 'a blank behind the quotation mark');
      } else {
        const valueStart = ++at;
        while (at < end && isBlank[bytes[at]!] === 0) at++;
        if (field >= 0) line.set(field, Kind.text, bytes, valueStart, at);
      }
      if (behind === equals) hasPair = true;
      at = skipBlanks(bytes, at, end);
    }
    return hasPair ? null : noPairReason;
  }

  /** A text in quotation marks from `start` on, kept when `field` is one of the line's. Returns the place of the last mark, or `end`. */
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
    if (hasEscape) this.#keepEscaped(bytes, start, at, field, line);
    else line.set(field, Kind.text, bytes, start, at);
    return at;
  }

  #keepEscaped(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): void {
    const from = this.#scratchUsed;
    const replaced = this.#unescape(bytes, start, end);
    line.set(field, Kind.text, this.#scratch, from, this.#scratchUsed);
    if (replaced > 0) line.countReplaced(field, replaced);
  }

  /** Appends what a text means to the scratch bytes; returns how many numbers that are no characters became U+FFFD. */
  #unescape(bytes: Uint8Array, start: number, end: number): number {
    const target = this.#scratch;
    let used = this.#scratchUsed;
    let replaced = 0;
    for (let at = start; at < end;) {
      const byte = bytes[at]!;
      const letter = byte === backslash ? bytes[at + 1]! : 0;
      const digits = digitsBehind[letter]!;
      let code = digits === 0 ? -1 : hexValue(bytes, at + 2, end, digits);
      if (code < 0) {
        target[used++] = escaped[letter] === 0 ? byte : escaped[letter]!;
        at += escaped[letter] === 0 ? 1 : 2;
        continue;
      }
      at += 2 + digits;
      // Go writes bytes that are no character so.
      if (digits === 2) {
        target[used++] = code;
        continue;
      }
      if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
        code = digits === 4 ? pairedCode(bytes, at, end, code) : -1;
        if (code < 0) replaced++;
        else at += 6;
      }
      used = writeCodePoint(target, used, code < 0 ? 0xfffd : code);
    }
    this.#scratchUsed = used;
    return replaced;
  }
}

/** The keys of a line that the parser takes, each once. */
export function logfmtKeys(bytes: Uint8Array): string[] {
  const keys = new Set<string>();
  const find = (source: Uint8Array, start: number, end: number): number => {
    keys.add(bytesText(source, start, end));
    return -1;
  };
  new LogfmtLineParser([], { find }).parse(bytes, 0, bytes.length, true, new ParsedLine(0));
  return [...keys];
}

function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank[bytes[at]!] === 1) at++;
  return at;
}

/** For each byte whether it is one of the characters. */
function byteFlags(characters: string): Uint8Array {
  const flags = new Uint8Array(256);
  for (const character of characters) flags[character.charCodeAt(0)] = 1;
  return flags;
}
