import { lineBytesMax, writeJsonRows, type LineOutput, type LineTable } from '../../kernels/json-rows.js';
import type { PieceSpace } from './piece-space.js';

/** Rows of a row group, and the positions they stand at: the ordinal of a row is `ordinalOfRow0` + row. */
export interface PlacedRows {
  /** Rows in their order; null for those from one row to another. */
  readonly rows: Uint32Array | null;
  readonly partition: number;
  readonly ordinalOfRow0: number;
}

const nothing = new Uint8Array(0);

/** Lines, and how many they are. */
export interface Piece {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/** Gathers lines into pieces of at most `pieceBytes`, which begin and end with a line. Only a line that is longer by itself makes a longer piece. */
export class JsonLines {
  readonly #pieceBytes: number;
  readonly #space: PieceSpace;
  readonly #output: LineOutput = { bytes: nothing, at: 0 };
  /** Of the piece that comes next. */
  #rows = 0;

  constructor(pieceBytes: number, space: PieceSpace) {
    this.#pieceBytes = pieceBytes;
    this.#space = space;
  }

  /** How many lines have been written since the last piece. */
  get rows(): number {
    return this.#rows;
  }

  /**
   * Writes the lines of rows[first], rows[first + 1], … up to `to` (of the rows `first`, `first` + 1, … without a list), and
   * returns the index of the first row for which the piece has no room: `take` it then, and go on.
   */
  write(table: LineTable, placed: PlacedRows, first: number, to: number): number {
    const output = this.#output;
    const { rows, partition, ordinalOfRow0 } = placed;
    const isBegun = output.bytes.length > 0;
    if (!isBegun) output.bytes = this.#space.open(this.#pieceBytes);
    let next = writeJsonRows(table, rows, first, to, partition, ordinalOfRow0, output);
    // How much the first line may take is asked only now: nearly all have room, and are written sooner than that is known.
    if (!isBegun && next === first && first < to) next = this.#writeLong(table, placed, first);
    this.#rows += next - first;
    return next;
  }

  /** The first line of a piece, which it had no room for: it stands alone, and without the room that its escapes might have taken. */
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
