/** Where the arrays of columns under construction come from. Numbers are 0 at first; bytes and offsets may be anything. */
export interface ArraySpace {
  bytes(length: number): Uint8Array;
  offsets(length: number): Uint32Array;
  halves(length: number): Int32Array;
}

/** Arrays of their own, which the garbage collector frees. */
export const heapArrays: ArraySpace = {
  bytes: (length) => new Uint8Array(length),
  offsets: (length) => new Uint32Array(length),
  halves: (length) => new Int32Array(length),
};

const alignmentBytes = 64;

/** Arrays one behind another in a range of memory; those that it has no room for any more are of the heap. */
export class RangeArrays implements ArraySpace {
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

  bytes(length: number): Uint8Array {
    const at = this.#take(length);
    return at < 0 ? heapArrays.bytes(length) : new Uint8Array(this.range.buffer, at, length);
  }

  offsets(length: number): Uint32Array {
    const at = this.#take(length * 4);
    return at < 0 ? heapArrays.offsets(length) : new Uint32Array(this.range.buffer, at, length);
  }

  halves(length: number): Int32Array {
    const at = this.#take(length * 4);
    return at < 0 ? heapArrays.halves(length) : new Int32Array(this.range.buffer, at, length).fill(0);
  }

  /** The address of so many bytes, -1 for none. */
  #take(sizeBytes: number): number {
    const at = this.#at;
    const end = at + Math.ceil(sizeBytes / alignmentBytes) * alignmentBytes;
    if (end > this.#end) return -1;
    this.#at = end;
    return at;
  }
}
