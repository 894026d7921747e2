import { fixedLineBytesMax, lineBytesMax, writeJsonRows } from '../kernels/json-rows.js';
import type { JsonColumn, JsonOutput } from '../kernels/json-rows.js';
import { bytesToCopy, writeRowsByKernel } from '../kernels/simd/json-rows.js';

/** The columns of one row group, ready to be written. */
export interface JsonColumns {
  readonly columns: readonly JsonColumn[];
  /** The most bytes of a line without its strings. */
  readonly fixedBytes: number;
  /** What a kernel's call copies of the columns; null where they don't lie in its memory. */
  readonly copiedBytes: number | null;
}

/** Columns of one row group, in the order of the response. */
export function makeJsonColumns(columns: readonly JsonColumn[]): JsonColumns {
  return { columns, fixedBytes: fixedLineBytesMax(columns), copiedBytes: bytesToCopy(columns) };
}

/** A piece that is being filled, in memory of its own. */
interface BegunPiece extends JsonOutput {
  bytes: Uint8Array<ArrayBuffer>;
}

const nothing = new Uint8Array(0);

/**
 * Gathers lines into pieces of at most `pieceBytes`, which begin and end with a line. Only a line that is longer by itself
 * makes a longer piece. A piece taken is the caller's own.
 */
export class JsonLines {
  readonly #pieceBytes: number;
  /** The bytes of the piece that comes next. */
  #nextBytes: number;
  readonly #output: BegunPiece = { bytes: nothing, at: 0 };

  /** @param firstBytes of the first piece, where there may be no second */
  constructor(pieceBytes: number, firstBytes: number = pieceBytes) {
    this.#pieceBytes = pieceBytes;
    this.#nextBytes = Math.min(firstBytes, pieceBytes);
  }

  /**
   * Writes the lines of rows[from], rows[from + 1], … up to `to`, and returns the index of the first row for which the
   * piece has no room: `take` it then, and go on.
   */
  write(
    from: JsonColumns,
    rows: Uint32Array,
    first: number,
    to: number,
    partition: number,
    ordinalOfRow0: number,
  ): number {
    const output = this.#output;
    let end = to;
    let isLong = false;
    if (output.bytes.length === 0) {
      const lineBytes = lineBytesMax(from.columns, from.fixedBytes, rows[first]!);
      isLong = lineBytes > this.#pieceBytes;
      // Its content is written before it is read, so that it need not be cleared.
      output.bytes = Buffer.allocUnsafeSlow(Math.max(this.#nextBytes, lineBytes));
      this.#nextBytes = this.#pieceBytes;
      if (isLong) end = first + 1;
    }
    const { columns, fixedBytes, copiedBytes } = from;
    const next =
      copiedBytes === null
        ? writeJsonRows(columns, fixedBytes, rows, first, end, partition, ordinalOfRow0, output)
        : writeRowsByKernel(
            { columns, fixedBytes, copiedBytes },
            rows,
            first,
            end,
            partition,
            ordinalOfRow0,
            output,
          );
    // A long line stands alone, and without the room that its escapes might have taken.
    if (isLong) output.bytes = output.bytes.slice(0, output.at);
    return next;
  }

  /** The lines since the last piece; null when there are none. */
  take(): Uint8Array<ArrayBuffer> | null {
    const { bytes, at } = this.#output;
    if (at === 0) return null;
    this.#output.bytes = nothing;
    this.#output.at = 0;
    return bytes.subarray(0, at);
  }
}
