import { bufferBytes } from '../memory/allocator.js';
import type { SharedMemory } from '../memory/shared-memory.js';
import { FormatError } from './format.js';

/**
 * Where the arrays of a decoded column come from. They are of any content, and followed by the slack that kernels need when
 * they lie in the kernels' memory. `working` bytes are needed while decoding only.
 */
export interface ColumnSpace {
  uint8(length: number): Uint8Array;
  uint16(length: number): Uint16Array;
  uint32(length: number): Uint32Array;
  int64(length: number): BigInt64Array;
  working(length: number): Uint8Array;
}

/** Arrays of their own, which the garbage collector frees. */
export const heapSpace: ColumnSpace = {
  uint8: (length) => new Uint8Array(length),
  uint16: (length) => new Uint16Array(length),
  uint32: (length) => new Uint32Array(length),
  int64: (length) => new BigInt64Array(length),
  working: (length) => new Uint8Array(length),
};

/**
 * A range of a shared memory, filled from its beginning with the arrays of a column and from its end with what only decoding needs.
 * Throws `FormatError` when they meet: then a column is larger than the footer says.
 */
export class RangeSpace implements ColumnSpace {
  readonly memory: SharedMemory;
  readonly address: number;
  readonly sizeBytes: number;
  readonly #buffer: ArrayBufferLike;
  #at: number;
  #end: number;

  /** `address` is aligned. */
  constructor(memory: SharedMemory, address: number, sizeBytes: number) {
    this.memory = memory;
    this.address = address;
    this.sizeBytes = sizeBytes;
    this.#buffer = memory.bufferUpTo(address + sizeBytes);
    this.#at = address;
    this.#end = address + sizeBytes;
  }

  /** Bytes from the beginning that arrays of the column take: all that must be kept. */
  get columnBytes(): number {
    return this.#at - this.address;
  }

  /** Says that another thread has filled the first `columnBytes` with the arrays of the column. */
  filled(columnBytes: number): void {
    this.#at = this.address + columnBytes;
  }

  uint8(length: number): Uint8Array {
    return new Uint8Array(this.#buffer, this.#take(length), length);
  }

  uint16(length: number): Uint16Array {
    return new Uint16Array(this.#buffer, this.#take(length * 2), length);
  }

  uint32(length: number): Uint32Array {
    return new Uint32Array(this.#buffer, this.#take(length * 4), length);
  }

  int64(length: number): BigInt64Array {
    return new BigInt64Array(this.#buffer, this.#take(length * 8), length);
  }

  working(length: number): Uint8Array {
    this.#check(length);
    this.#end -= bufferBytes(length);
    return new Uint8Array(this.#buffer, this.#end, length);
  }

  #take(sizeBytes: number): number {
    this.#check(sizeBytes);
    const address = this.#at;
    this.#at += bufferBytes(sizeBytes);
    return address;
  }

  #check(sizeBytes: number): void {
    if (this.#at + bufferBytes(sizeBytes) <= this.#end) return;
    throw new FormatError('a column chunk that holds more than the footer says', 0);
  }
}
