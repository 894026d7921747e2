import { bufferBytes } from '../memory/allocator.js';
import { deltaBytesMax } from '../kernels/delta.js';
import { lz4BytesMax } from '../kernels/lz4.js';
import { heap, type Arena } from '../memory/arena.js';
import { keptScratchBytes, withKeptScratch } from '../memory/scratch.js';

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
  /** Allocates the memory of finished chunks. */
  readonly output: Arena;
  readonly #kept: Uint8Array | null;
  #at = 0;

  constructor(kept: Uint8Array | null, pageBytes: number, output: Arena) {
    this.#kept = kept;
    this.output = output;
    this.page = this.take(pageBytes);
    this.packed = this.take(lz4BytesMax(pageBytes));
  }

  /** Allocates memory for values. It is on the heap once the space is used up. */
  readonly take: Arena = (sizeBytes) => {
    const at = this.#at;
    const end = at + bufferBytes(sizeBytes);
    if (this.#kept === null || end > this.#kept.length) return heap(sizeBytes);
    this.#at = end;
    return this.#kept.subarray(at, at + sizeBytes);
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
