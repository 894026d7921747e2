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
