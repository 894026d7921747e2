import { lineBytesMax, writeJsonRows, type LineOutput, type LineTable } from '../../kernels/json-rows.js';
import type { PieceSpace } from './piece-space.js';

/** Rows of a row group and their positions: the ordinal of row `r` is `ordinalOfRow0 + r`. */
export interface PlacedRows {
  /** Row numbers, ascending; null where the rows are consecutive. */
  readonly rows: Uint32Array | null;
  readonly partition: number;
  readonly ordinalOfRow0: number;
}

const nothing = new Uint8Array(0);

/** Whole lines, and the number of rows that they are. */
export interface Piece {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/**
 * Collects lines in pieces of at most `pieceBytes`. Pieces begin and end with a line. A line that is longer than that makes a piece of its
 * own.
 */
export class JsonLines {
  readonly #pieceBytes: number;
  readonly #space: PieceSpace;
  readonly #output: LineOutput = { bytes: nothing, at: 0 };
  /** Number of rows in the piece that is being filled. */
  #rows = 0;

  constructor(pieceBytes: number, space: PieceSpace) {
    this.#pieceBytes = pieceBytes;
    this.#space = space;
  }

  /** Number of lines written since the last piece. */
  get rows(): number {
    return this.#rows;
  }

  /**
   * Writes the lines of rows[first], rows[first + 1], …, up to index `to` (exclusive); without a list, of the rows `first` to `to`. Returns
   * the index of the first row for which the piece has no room. The caller then calls `take`, and continues with that row.
   */
  write(table: LineTable, placed: PlacedRows, first: number, to: number): number {
    const output = this.#output;
    const { rows, partition, ordinalOfRow0 } = placed;
    const isBegun = output.bytes.length > 0;
    if (!isBegun) output.bytes = this.#space.open(this.#pieceBytes);
    let next = writeJsonRows(table, rows, first, to, partition, ordinalOfRow0, output);
    // The maximum length of the first line is computed only after it did not fit: nearly all lines fit, and are written faster than that
    // length is computed.
    if (!isBegun && next === first && first < to) next = this.#writeLong(table, placed, first);
    this.#rows += next - first;
    return next;
  }

  /**
   * Writes a line that is too long for a piece, as a piece of its own. The piece is cut to the written length: the room allows for escapes
   * that the line may not have.
   */
  #writeLong(table: LineTable, placed: PlacedRows, first: number): number {
    const output = this.#output;
    const { rows, partition, ordinalOfRow0 } = placed;
    output.bytes = this.#space.open(lineBytesMax(table, rows, first));
    const next = writeJsonRows(table, rows, first, first + 1, partition, ordinalOfRow0, output);
    output.bytes = output.bytes.subarray(0, output.at);
    return next;
  }

  /** The lines since the last piece; null when there are none. */
  take(): Piece | null {
    const { bytes, at } = this.#output;
    if (at === 0) return null;
    const rows = this.#rows;
    this.#output.bytes = nothing;
    this.#output.at = 0;
    this.#rows = 0;
    return { bytes: this.#space.end(bytes.subarray(0, at)), rows };
  }
}
