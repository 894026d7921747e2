import { heap, type Arena } from '../memory/arena.js';
import { bufferBytes } from '../memory/allocator.js';
import type { SharedMemory } from '../memory/shared-memory.js';
import { FormatError } from './format.js';

/**
 * Where a column is decoded to. What `kept` gives becomes its arrays, followed by the slack that kernels need when they lie in the kernels'
 * memory; what `working` gives is needed while decoding only.
 */
export interface ColumnSpace {
  readonly kept: Arena;
  readonly working: Arena;
}

/** Arrays of the heap. */
export const heapSpace: ColumnSpace = { kept: heap, working: heap };

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
    throw new FormatError('a column chunk that holds more than the footer says', 0);
  }
}
