import { alignedBytes } from './allocator.js';

/**
 * Gives memory of a size in bytes, of any content, at a multiple of 8 bytes in its buffer. What an arena gave ends together: with the range
 * that it was taken from, whose owner frees that, or when nobody holds it any more. Who needs memory is passed an arena.
 */
export type Arena = (sizeBytes: number) => Uint8Array;

/** Memory of the heap, which the garbage collector frees. It is 0 at first. */
export const heap: Arena = (sizeBytes) => new Uint8Array(sizeBytes);

/** Codes of two bytes in memory of an arena. */
export function uint16sOf(arena: Arena, length: number): Uint16Array {
  const { buffer, byteOffset } = arena(length * 2);
  return new Uint16Array(buffer, byteOffset, length);
}

/** Offsets in memory of an arena. */
export function uint32sOf(arena: Arena, length: number): Uint32Array {
  const { buffer, byteOffset } = arena(length * 4);
  return new Uint32Array(buffer, byteOffset, length);
}

/** Integers of 64 bits in memory of an arena. */
export function int64sOf(arena: Arena, length: number): BigInt64Array {
  const { buffer, byteOffset } = arena(length * 8);
  return new BigInt64Array(buffer, byteOffset, length);
}

/** Memory of a range, piece behind piece; what it has no room for any more is of the heap. */
export class RangeArena {
  #at: number;
  readonly #end: number;

  /** @param range begins at an aligned address, and slack follows it */
  constructor(readonly range: Uint8Array) {
    this.#at = range.byteOffset;
    this.#end = range.byteOffset + range.length;
  }

  /** Bytes of the range that were given out. */
  get usedBytes(): number {
    return this.#at - this.range.byteOffset;
  }

  /** Where an array lies in the range; -1 where it does not. */
  placeOf({ buffer, byteOffset }: ArrayBufferView<ArrayBufferLike>): number {
    return buffer === this.range.buffer && byteOffset >= this.range.byteOffset && byteOffset < this.#end
      ? byteOffset - this.range.byteOffset
      : -1;
  }

  readonly take: Arena = (sizeBytes) => {
    const at = this.#at;
    const end = at + alignedBytes(sizeBytes);
    if (end > this.#end) return heap(sizeBytes);
    this.#at = end;
    return new Uint8Array(this.range.buffer, at, sizeBytes);
  };
}
