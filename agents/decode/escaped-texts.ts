import { Kind, type ParsedLine } from './parsed-line.js';

/** Name of a key and number of the object that contains it. Equal names in different objects are different keys. */
export interface HeldName {
  readonly name: string;
  readonly parent: number;
}

/** Finds names by their UTF-8 bytes without creating strings: a hash table with open addressing. */
export class KeyTable {
  readonly #mask: number;
  /** For each slot, the number of its name, or -1. */
  readonly #slots: Int32Array;
  readonly #hashes: Int32Array;
  readonly #names: readonly Uint8Array[];
  readonly #parents: Int32Array;

  /** A name that occurs twice is found by its first number. */
  constructor(names: readonly HeldName[]) {
    this.#names = names.map(({ name }) => Buffer.from(name));
    this.#parents = Int32Array.from(names, ({ parent }) => parent);
    let size = 16;
    while (size < names.length * 4) size *= 2;
    this.#mask = size - 1;
    this.#slots = new Int32Array(size).fill(-1);
    this.#hashes = new Int32Array(size);
    this.#names.forEach((name, number) => {
      const parent = this.#parents[number]!;
      if (this.find(name, 0, name.length, parent) < 0) this.#insert(name, parent, number);
    });
  }

  /** The number of the name bytes[start, end) in the object `parent`, or -1. */
  find(bytes: Uint8Array, start: number, end: number, parent: number): number {
    const hash = hashOf(bytes, start, end, parent);
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]!;
      if (number < 0) return -1;
      const mayBeKey = this.#hashes[slot] === hash && this.#parents[number] === parent;
      if (mayBeKey && isName(this.#names[number]!, bytes, start, end)) return number;
    }
  }

  #insert(name: Uint8Array, parent: number, number: number): void {
    const hash = hashOf(name, 0, name.length, parent);
    let slot = hash & this.#mask;
    while (this.#slots[slot]! >= 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot] = number;
    this.#hashes[slot] = hash;
  }
}

/**
 * FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), seeded with the parent's number and folded so that the low bits
 * depend on all of it.
 */
function hashOf(bytes: Uint8Array, start: number, end: number, parent: number): number {
  let hash = 0x811c9dc5 ^ parent;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash ^ (hash >>> 15);
}

function isName(name: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[start + i]) return false;
  return true;
}

const backslash = 0x5c;

/** The character that each letter after a backslash stands for; 0 for letters without a meaning, and for those that introduce a number. */
const meanings = new Uint8Array(256);
for (const [letter, code] of Object.entries({ a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11 })) {
  meanings[letter.charCodeAt(0)] = code;
}
for (const letter of '"\\/\'') meanings[letter.charCodeAt(0)] = letter.charCodeAt(0);

/** Number of hexadecimal digits after each letter that introduces a character's number. */
const digitsBehind = new Uint8Array(256);
for (const [letter, digits] of Object.entries({ x: 2, u: 4, U: 8 })) {
  digitsBehind[letter.charCodeAt(0)] = digits;
}

/**
 * Texts of a line with their escapes resolved, as in Go and JSON: `\n` and the like, `\xhh`, `\uhhhh`, `\Uhhhhhhhh`, and
 * surrogate pairs of two `\u`. A backslash before anything else stands for itself. Numbers that are not characters become
 * U+FFFD.
 */
export class EscapedTexts {
  #bytes = new Uint8Array(4096);
  #used = 0;

  /** Drops the texts of the previous line. */
  clear(): void {
    this.#used = 0;
  }

  /** Sets a field of the line to the unescaped bytes[start, end). */
  keep(bytes: Uint8Array, start: number, end: number, field: number, line: ParsedLine): void {
    this.#reserve(end - start);
    const from = this.#used;
    const replaced = this.#append(bytes, start, end);
    line.set(field, Kind.text, this.#bytes, from, this.#used);
    if (replaced > 0) line.countReplaced(field, replaced);
  }

  /** The number of the key whose escaped form is bytes[start, end), or -1. */
  findKey(
    bytes: Uint8Array,
    start: number,
    end: number,
    table: Pick<KeyTable, 'find'>,
    parent: number,
  ): number {
    this.#reserve(end - start);
    const used = this.#used;
    this.#append(bytes, start, end);
    const key = table.find(this.#bytes, used, this.#used, parent);
    this.#used = used;
    return key;
  }

  /**
   * Makes room for a text, which is never longer than its escaped form. Fields of the line keep pointing into the array that
   * they were set with.
   */
  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#bytes.length) return;
    this.#bytes = new Uint8Array(2 * (this.#bytes.length + bytes));
    this.#used = 0;
  }

  /** Appends the unescaped text; returns how many of its numbers became U+FFFD. */
  #append(bytes: Uint8Array, start: number, end: number): number {
    const target = this.#bytes;
    let used = this.#used;
    let replaced = 0;
    for (let at = start; at < end;) {
      const byte = bytes[at]!;
      if (byte !== backslash) {
        target[used++] = byte;
        at++;
        continue;
      }
      const letter = bytes[at + 1]!;
      const digits = digitsBehind[letter]!;
      let code = digits === 0 ? -1 : hexValue(bytes, at + 2, end, digits);
      if (code < 0) {
        target[used++] = meanings[letter] === 0 ? byte : meanings[letter]!;
        at += meanings[letter] === 0 ? 1 : 2;
        continue;
      }
      at += 2 + digits;
      // `\xhh` is a byte: Go writes bytes of invalid UTF-8 so.
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
    this.#used = used;
    return replaced;
  }
}

/** A table with 1 for the bytes of the given characters, and 0 for others. */
export function byteFlags(characters: string): Uint8Array {
  const flags = new Uint8Array(256);
  for (const character of characters) flags[character.charCodeAt(0)] = 1;
  return flags;
}

/** The value of `digits` hexadecimal digits, at most eight; -1 where they are not all there. */
export function hexValue(bytes: Uint8Array, start: number, end: number, digits: number): number {
  if (start + digits > end) return -1;
  let value = 0;
  for (let at = start; at < start + digits; at++) {
    const byte = bytes[at]!;
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) value = value * 16 + letter - 0x57;
    else return -1;
  }
  return value;
}

/**
 * The character of a surrogate pair: `high` is the first half, and an escape of six bytes at `at` the second. -1 where that
 * is not a second half.
 */
function pairedCode(bytes: Uint8Array, at: number, end: number, high: number): number {
  if (high >= 0xdc00 || bytes[at] !== backslash || bytes[at + 1] !== 0x75) return -1;
  const low = hexValue(bytes, at + 2, end, 4);
  if (low < 0xdc00 || low > 0xdfff) return -1;
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/** Writes a code point as UTF-8; returns the position after it. */
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
