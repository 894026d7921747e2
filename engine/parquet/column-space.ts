import { heap, type Arena } from '../core/arena.js';
import { bufferBytes } from '../core/allocator.js';
import type { SharedMemory } from '../core/shared-memory.js';
import { FormatError } from './format.js';
import { deltaBytesMax } from '../kernels/delta.js';
import { lz4BytesMax } from '../kernels/lz4.js';
import { keptScratchBytes, withKeptScratch } from '../core/scratch.js';

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
  readonly #buffer: ArrayBufferLike;
  #at: number;
  #end: number;

  /** @param address must be aligned */
  constructor(
    readonly memory: SharedMemory,
    readonly address: number,
    readonly sizeBytes: number,
  ) {
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

/** Scratch bytes that kernels need while a chunk is encoded, besides copies of the values: tables, codes, bitmaps. */
const callBytesMax = 8 * 1024 * 1024;

/**
 * Memory for encoding one column chunk: for its values, for a page of them, and for the compressed page. It is in the kernels' memory where
 * possible, so that each step can read in place what the step before has written.
 */
export class EncodeSpace {
  /** Memory for a page. */
  readonly page: Uint8Array;
  /** Memory for a compressed page. */
  readonly packed: Uint8Array;
  #at = 0;

  constructor(
    private readonly kept: Uint8Array | null,
    pageBytes: number /** Allocates the memory of finished chunks. */,
    readonly output: Arena,
  ) {
    this.page = this.take(pageBytes);
    this.packed = this.take(lz4BytesMax(pageBytes));
  }

  /** Allocates memory for values. It is on the heap once the space is used up. */
  readonly take: Arena = (sizeBytes) => {
    const at = this.#at;
    const end = at + bufferBytes(sizeBytes);
    if (this.kept === null || end > this.kept.length) return heap(sizeBytes);
    this.#at = end;
    return this.kept.subarray(at, at + sizeBytes);
  };

  /** Allocates the memory of `page` for something else, once the chunk is finished. Each call allocates the same memory. */
  readonly reusePage: Arena = (sizeBytes) =>
    sizeBytes <= this.page.length ? this.page.subarray(0, sizeBytes) : heap(sizeBytes);
}

/** An encode space on the heap, for chunks of up to `rows` values of 8 bytes. Their values are in other memory. */
export function heapEncodeSpace(rows: number): EncodeSpace {
  return new EncodeSpace(null, pageBytesMax(rows * 8, rows), heap);
}

/** The scratch bytes that `withEncodeSpace` needs, including those of the kernels that are called. */
export function encodeSpaceBytes(valueBytes: number, rows: number): number {
  return keptScratchBytes(keptSpaceBytes(valueBytes, rows), valueBytes + callBytesMax);
}

/** Maximum bytes of the encoded values, in any encoding. */
function pageBytesMax(valueBytes: number, rows: number): number {
  return valueBytes + deltaBytesMax(rows);
}

function keptSpaceBytes(valueBytes: number, rows: number): number {
  const pageBytes = pageBytesMax(valueBytes, rows);
  // A string column has two buffers of values.
  const keptBytes = bufferBytes(valueBytes) + 2 * bufferBytes(0) + bufferBytes(pageBytes);
  return keptBytes + bufferBytes(lz4BytesMax(pageBytes));
}

/**
 * Calls `encode` with memory for `rows` values of `valueBytes` bytes in total, and for their pages. The result must not refer to that
 * memory, only to memory of `output`.
 */
export function withEncodeSpace<T>(
  valueBytes: number,
  rows: number,
  output: Arena,
  encode: (space: EncodeSpace) => T,
): T {
  const sizeBytes = keptSpaceBytes(valueBytes, rows);
  return withKeptScratch(sizeBytes, valueBytes + callBytesMax, (kept) =>
    encode(new EncodeSpace(kept, pageBytesMax(valueBytes, rows), output)),
  );
}
