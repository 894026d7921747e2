import { heap, type Arena } from '../memory/arena.js';
import { bufferBytes } from '../memory/allocator.js';
import type { SharedMemory } from '../memory/shared-memory.js';
import { FormatError } from './format.js';

/**
 * The memory that a column is decoded to. `kept` gives the arrays of the column; where they are in the kernels' memory, padding follows
 * each. `working` gives memory that is only needed while decoding.
 */
export interface ColumnSpace {
  readonly kept: Arena;
  readonly working: Arena;
}

/** Memory on the heap. */
export const heapSpace: ColumnSpace = { kept: heap, working: heap };

/**
 * A range of shared memory. The arrays of a column fill it from the start, and the memory that is only needed while decoding from the end.
 * Throws `FormatError` when they meet, because then the column is larger than the footer says.
 */
export class RangeSpace implements ColumnSpace {
  readonly memory: SharedMemory;
  readonly address: number;
  readonly sizeBytes: number;
  readonly #buffer: ArrayBufferLike;
  #at: number;
  #end: number;

  /** @param address must be aligned */
  constructor(memory: SharedMemory, address: number, sizeBytes: number) {
    this.memory = memory;
    this.address = address;
    this.sizeBytes = sizeBytes;
    this.#buffer = memory.bufferUpTo(address + sizeBytes);
    this.#at = address;
    this.#end = address + sizeBytes;
  }

  /** Bytes at the start that the arrays of the column take. The rest can be freed after decoding. */
  get columnBytes(): number {
    return this.#at - this.address;
  }

  /** Notes that another thread has filled the first `columnBytes` bytes with the arrays of the column. */
  filled(columnBytes: number): void {
    this.#at = this.address + columnBytes;
  }

  readonly kept: Arena = (sizeBytes) => {
    this.#check(sizeBytes);
    const address = this.#at;
    this.#at += bufferBytes(sizeBytes);
    return new Uint8Array(this.#buffer, address, sizeBytes);
  };

  readonly working: Arena = (sizeBytes) => {
    this.#check(sizeBytes);
    this.#end -= bufferBytes(sizeBytes);
    return new Uint8Array(this.#buffer, this.#end, sizeBytes);
  };

  #check(sizeBytes: number): void {
    if (this.#at + bufferBytes(sizeBytes) <= this.#end) return;
    throw new FormatError('a column chunk has more data than the footer says', 0);
  }
}
