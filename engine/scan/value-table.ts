import { randomInt } from 'node:crypto';
import { copyBytes } from '../core/utf8.js';
import { countTextBytesMax, countValuesMax, countMemoryBytesMax } from '../core/limits.js';
import { CountBoundError } from './count-query.js';
import { LogstrataError } from '../core/errors.js';

const valuesAtFirst = 256;
const textBytesAtFirst = 4096;
/** Bytes per value besides its text: its end, its count, and two slots. */
const valueBytes = 4 + 8 + 2 * 8;

const two31 = 2 ** 31;
const part31 = 2 ** -31;

/** Bytes that are hashed with one set of keys: one key for each two bytes, and one for each of the up to three bytes at the end. */
const blockBytes = 64;
const keysOfBlock = blockBytes / 2 + 3;
/** 2^31 − 1. Hashes are computed modulo this prime. */
const prime = two31 - 1;

/**
 * Assigns numbers to different values, given as bytes, and counts each. The hash of a block of bytes is the sum of its words, each times a
 * random key; the hash of a value is the polynomial of its block hashes at a random point (multilinear and polynomial hashing). The keys
 * are chosen at run time, so that nobody who writes to a log can choose values that collide.
 */
export class ValueTable {
  readonly #memory: CountMemory;
  readonly #field: string;
  readonly #place = randomInt(2 ** 16, 2 ** 21);
  readonly #keys = Float64Array.from({ length: keysOfBlock }, () => randomInt(prime));
  #text = new Uint8Array(textBytesAtFirst);
  #textView = new DataView(this.#text.buffer);
  #viewed: Uint8Array = this.#text;
  #view: DataView = this.#textView;
  /** End of each value in `#text`. */
  #ends = new Uint32Array(valuesAtFirst);
  #counts = new Float64Array(valuesAtFirst);
  /** A slot has the number of a value plus 1, or 0 if it is empty, and the hash beside it: reading that elsewhere takes long in a large table. */
  #slots = new Uint32Array(4 * valuesAtFirst);
  #size = 0;

  /** @param field name of the field, for messages */
  constructor(memory: CountMemory, field: string) {
    memory.take(valuesAtFirst * valueBytes + textBytesAtFirst);
    this.#memory = memory;
    this.#field = field;
  }

  /** Number of different values. */
  get size(): number {
    return this.#size;
  }

  /** The part of the values, or of their bytes, that it may have. */
  get fullness(): number {
    return Math.max(this.#size / countValuesMax, this.#startOf(this.#size) / countTextBytesMax);
  }

  /** The count of each value, by its number. */
  get counts(): Float64Array {
    return this.#counts.subarray(0, this.#size);
  }

  /** The bytes of a value. They may be read until the next value is added. */
  valueOf(value: number): Uint8Array {
    return this.#text.subarray(this.#startOf(value), this.#ends[value]);
  }

  /** Adds `rows` to the count of a value. */
  count(value: number, rows: number): void {
    this.#counts[value]! += rows;
  }

  /** The number of the value bytes[from, to). A new value gets a number. Throws `CountBoundError` where there are too many. */
  add(bytes: Uint8Array, from: number, to: number): number {
    const hash = this.#hashOf(bytes, from, to);
    const slot = this.#slotOf(hash, bytes, from, to);
    const known = this.#slots[slot]! - 1;
    if (known >= 0) return known;
    return this.#append(slot, hash, bytes, from, to);
  }

  /** The number of the value bytes[from, to); -1 where it has none. */
  find(bytes: Uint8Array, from: number, to: number): number {
    return this.#slots[this.#slotOf(this.#hashOf(bytes, from, to), bytes, from, to)]! - 1;
  }

  #startOf(value: number): number {
    return value === 0 ? 0 : this.#ends[value - 1]!;
  }

  #hashOf(bytes: Uint8Array, from: number, to: number): number {
    const keys = this.#keys;
    const place = this.#place;
    const view = this.#viewOf(bytes);
    let hash = to - from + 1;
    for (let at = from; at < to;) {
      const end = Math.min(to, at + blockBytes);
      // All sums and products stay below 2^53, where doubles are exact.
      let sum = 0;
      let other = 0;
      let key = 0;
      for (; at + 3 < end; at += 4, key += 2) {
        sum += keys[key]! * view.getUint16(at);
        other += keys[key + 1]! * view.getUint16(at + 2);
      }
      for (; at < end; at++, key++) sum += keys[key]! * bytes[at]!;
      hash = fold(hash * place + fold(sum + other));
    }
    return fold(hash * place) >>> 0;
  }

  /** The slot of a value, or the empty slot where it belongs. */
  #slotOf(hash: number, bytes: Uint8Array, from: number, to: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = (scattered(hash) << 1) & mask; ; slot = (slot + 2) & mask) {
      const value = slots[slot]! - 1;
      if (value < 0 || (slots[slot + 1] === hash && this.#isSame(value, bytes, from, to))) return slot;
    }
  }

  #isSame(value: number, bytes: Uint8Array, from: number, to: number): boolean {
    const start = this.#startOf(value);
    if (this.#ends[value]! - start !== to - from) return false;
    const text = this.#textView;
    const view = this.#viewOf(bytes);
    let at = from;
    let own = start;
    for (; at + 3 < to; at += 4, own += 4) if (text.getUint32(own) !== view.getUint32(at)) return false;
    for (; at < to; at++, own++) if (text.getUint8(own) !== view.getUint8(at)) return false;
    return true;
  }

  /** A view that reads several bytes at once. It is cached, because consecutive values mostly come from one array. */
  #viewOf(bytes: Uint8Array): DataView {
    if (bytes !== this.#viewed) {
      this.#viewed = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    return this.#view;
  }

  #append(slot: number, hash: number, bytes: Uint8Array, from: number, to: number): number {
    const value = this.#size;
    const start = this.#startOf(value);
    if (value === countValuesMax || start + to - from > countTextBytesMax) throw this.#tooMany();
    this.#makeTextRoom(start + to - from);
    copyBytes(bytes, from, to, this.#text, start);
    if (value === this.#ends.length) {
      this.#makeRoom();
      slot = this.#slotOf(hash, bytes, from, to);
    }
    this.#ends[value] = start + to - from;
    this.#slots[slot] = value + 1;
    this.#slots[slot + 1] = hash;
    this.#size++;
    return value;
  }

  #tooMany(): CountBoundError {
    return new CountBoundError(
      'values',
      `field "${this.#field}" has more different values in these records than can be counted: ` +
        `at most ${countValuesMax} values with ${countTextBytesMax} bytes. Add filters, or count by another field`,
    );
  }

  #makeTextRoom(wanted: number): void {
    const known = this.#text;
    if (wanted <= known.length) return;
    const sizeBytes = Math.min(countTextBytesMax, Math.max(wanted, 2 * known.length));
    this.#memory.take(sizeBytes);
    this.#text = new Uint8Array(sizeBytes);
    this.#text.set(known);
    this.#textView = new DataView(this.#text.buffer);
    this.#memory.take(-known.length);
  }

  /** Doubles the capacity for values. */
  #makeRoom(): void {
    const room = 2 * this.#ends.length;
    this.#memory.take((room - this.#ends.length) * valueBytes);
    this.#ends = grown(this.#ends, new Uint32Array(room));
    this.#counts = grown(this.#counts, new Float64Array(room));
    const known = this.#slots;
    const slots = new Uint32Array(4 * room);
    const mask = slots.length - 1;
    for (let i = 0; i < known.length; i += 2) {
      if (known[i] === 0) continue;
      let slot = (scattered(known[i + 1]!) << 1) & mask;
      while (slots[slot] !== 0) slot = (slot + 2) & mask;
      slots[slot] = known[i]!;
      slots[slot + 1] = known[i + 1]!;
    }
    this.#slots = slots;
  }
}

/** Reduces a number below 2^53 modulo 2^31 − 1, though only to a number below 2^32. */
function fold(value: number): number {
  const upper = Math.floor(value * part31);
  return value - upper * two31 + upper;
}

/** Mixes the bits of a hash, because slots are chosen by the low ones. */
function scattered(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function grown<Values extends Uint32Array | Float64Array>(from: Values, to: Values): Values {
  to.set(from);
  return to;
}

let takenBytes = 0;

/**
 * The memory that one count uses, as part of a limit on all counts together. Call `release` in the `finally` of the function that made it.
 */
export class CountMemory {
  #bytes = 0;

  /**
   * Takes that many bytes; a negative number gives bytes back. Throws `limit` where all counts together would exceed `countMemoryBytesMax`.
   */
  take(bytes: number): void {
    if (bytes > 0 && takenBytes + bytes > countMemoryBytesMax)
      throw new LogstrataError('limit', 'other counts use all the memory for their values: try again');
    this.#bytes += bytes;
    takenBytes += bytes;
  }

  /** Gives back everything that was taken. */
  release(): void {
    takenBytes -= this.#bytes;
    this.#bytes = 0;
  }
}
