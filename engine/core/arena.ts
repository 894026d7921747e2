import { alignedBytes } from './allocator.js';

/**
 * Allocates memory of a size in bytes, with undefined contents, at a multiple of 8 in its buffer. All memory from one arena ends together:
 * when the owner of the underlying range frees it, or by garbage collection. Functions that allocate take an arena as an argument, so that
 * the caller decides where.
 */
export type Arena = (sizeBytes: number) => Uint8Array;

/** Memory of the heap, which the garbage collector frees. It is zeroed. */
export const heap: Arena = (sizeBytes) => new Uint8Array(sizeBytes);

/** Allocates 16-bit dictionary codes. */
export function uint16sOf(arena: Arena, length: number): Uint16Array {
  const { buffer, byteOffset } = arena(length * 2);
  return new Uint16Array(buffer, byteOffset, length);
}

/** Allocates 32-bit offsets. */
export function uint32sOf(arena: Arena, length: number): Uint32Array {
  const { buffer, byteOffset } = arena(length * 4);
  return new Uint32Array(buffer, byteOffset, length);
}

/** Allocates 64-bit integers. */
export function int64sOf(arena: Arena, length: number): BigInt64Array {
  const { buffer, byteOffset } = arena(length * 8);
  return new BigInt64Array(buffer, byteOffset, length);
}

/** An arena over a range. What the range has no room for is allocated on the heap. */
export class RangeArena {
  #at: number;
  readonly #end: number;

  /** @param range must begin at an aligned address and be followed by padding (`paddingBytes`) */
  constructor(readonly range: Uint8Array) {
    this.#at = range.byteOffset;
    this.#end = range.byteOffset + range.length;
  }

  /** Bytes of the range that have been allocated. */
  get usedBytes(): number {
    return this.#at - this.range.byteOffset;
  }

  /** Offset of an array in the range; -1 where it is elsewhere. */
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
