/** Finds names by their UTF-8 bytes, without making strings: an open hash table. */
export class KeyTable {
  readonly #mask: number;
  /** For each slot the number of its name, or -1. */
  readonly #slots: Int32Array;
  readonly #hashes: Int32Array;
  readonly #names: readonly Uint8Array[];

  /** A name that comes twice is found as its first number. */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => Buffer.from(name));
    let size = 16;
    while (size < names.length * 4) size *= 2;
    this.#mask = size - 1;
    this.#slots = new Int32Array(size).fill(-1);
    this.#hashes = new Int32Array(size);
    this.#names.forEach((name, number) => {
      if (this.find(name, 0, name.length) < 0) this.#insert(name, number);
    });
  }

  /** The number of the name that is bytes[start, end), or -1. */
  find(bytes: Uint8Array, start: number, end: number): number {
    const hash = hashOf(bytes, start, end);
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]!;
      if (number < 0) return -1;
      if (this.#hashes[slot] === hash && isName(this.#names[number]!, bytes, start, end)) return number;
    }
  }

  #insert(name: Uint8Array, number: number): void {
    const hash = hashOf(name, 0, name.length);
    let slot = hash & this.#mask;
    while (this.#slots[slot]! >= 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot] = number;
    this.#hashes[slot] = hash;
  }
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), folded so that the low bits see all of it. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash ^ (hash >>> 15);
}

function isName(name: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[start + i]) return false;
  return true;
}
