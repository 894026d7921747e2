import { bufferBytes } from '../memory/allocator.js';
import { deltaBytesMax } from '../kernels/delta.js';
import { lz4BytesMax } from '../kernels/lz4.js';
import { heap, type Arena } from '../memory/arena.js';
import { keptScratchBytes, withKeptScratch } from '../memory/scratch.js';

/** What kernels need beside copies of the values while a chunk is encoded: tables, codes, bitmaps. */
const callBytesMax = 8 * 1024 * 1024;

/**
 * Memory for encoding one column chunk: for its values, a page of them, and the page compressed. Where it can be had it lies
 * in the kernels' memory, so that what one step has written the next reads where it is.
 */
export class EncodeSpace {
  /** Room for a page. */
  readonly page: Uint8Array;
  /** Room for a page that was compressed. */
  readonly packed: Uint8Array;
  /** Gives the bytes of a chunk that is done. */
  readonly output: Arena;
  readonly #kept: Uint8Array | null;
  #at = 0;

  constructor(kept: Uint8Array | null, pageBytes: number, output: Arena) {
    this.#kept = kept;
    this.output = output;
    this.page = this.take(pageBytes);
    this.packed = this.take(lz4BytesMax(pageBytes));
  }

  /** Memory for values; of the heap where it is used up. */
  readonly take: Arena = (sizeBytes) => {
    const at = this.#at;
    const end = at + bufferBytes(sizeBytes);
    if (this.#kept === null || end > this.#kept.length) return heap(sizeBytes);
    this.#at = end;
    return this.#kept.subarray(at, at + sizeBytes);
  };
}

/** Memory of the heap for encoding chunks of up to `rows` rows, whose values are 8 bytes each and lie elsewhere. */
export function heapEncodeSpace(rows: number): EncodeSpace {
  return new EncodeSpace(null, pageBytesMax(rows * 8, rows), heap);
}

/** What `withEncodeSpace` asks for, with what the calls of kernels need beside it. */
export function encodeSpaceBytes(valueBytes: number, rows: number): number {
  return keptScratchBytes(keptSpaceBytes(valueBytes, rows), valueBytes + callBytesMax);
}

/** What the values need in any encoding. */
function pageBytesMax(valueBytes: number, rows: number): number {
  return valueBytes + deltaBytesMax(rows);
}

function keptSpaceBytes(valueBytes: number, rows: number): number {
  const pageBytes = pageBytesMax(valueBytes, rows);
  // The values of a string column are two buffers.
  const keptBytes = bufferBytes(valueBytes) + 2 * bufferBytes(0) + bufferBytes(pageBytes);
  return keptBytes + bufferBytes(lz4BytesMax(pageBytes));
}

/**
 * Has `encode` work with memory for `rows` values of `valueBytes` and pages of them. What it returns must not lie in there,
 * but in memory that `output` gives.
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
