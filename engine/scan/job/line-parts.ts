import { lineBytesMax, writeJsonRows, type LineOutput, type LineTable } from '../../kernels/json-rows.js';
import type { PieceSpace } from './piece-space.js';
import { countInRange, listSelected, type Matches } from './selection.js';
import { lowerBound } from '../plan/run-index.js';

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

/**
 * Rows of one row group whose ordinals all have the same distance to the row number: rows[first] up to rows[end] (exclusive) of the list,
 * or the rows `first` to `end` without a list.
 */
export interface LinePart extends PlacedRows {
  readonly first: number;
  readonly end: number;
}

/** The rows that an answer takes from one unit, in the order of the answer. */
export function* partsOf({ unit, selection, skip, take }: Matches): Generator<LinePart> {
  // One list for all ranges, because most ranges have few rows.
  const listed = selection.kind === 'rows' ? new Uint32Array(selection.rows) : null;
  let toSkip = skip;
  let left = take;
  for (const range of unit.ranges) {
    if (left === 0) break;
    const count = countInRange(selection, range);
    const skipped = Math.min(toSkip, count);
    const taken = Math.min(count - skipped, left);
    toSkip -= skipped;
    left -= taken;
    if (taken === 0) continue;
    const { partition } = range;
    const ordinalOfRow0 = range.firstOrdinal - range.firstRow;
    if (selection.kind === 'all') {
      const first = range.firstRow + skipped;
      yield { rows: null, first, end: first + taken, partition, ordinalOfRow0 };
    } else if (listed !== null) {
      const first = lowerBound(listed, range.firstRow) + skipped;
      yield { rows: listed, first, end: first + taken, partition, ordinalOfRow0 };
    } else {
      const rows = new Uint32Array(count);
      listSelected(selection, range, rows);
      yield { rows, first: skipped, end: skipped + taken, partition, ordinalOfRow0 };
    }
  }
}

/** Takes parts from the front of an answer's rows. */
export class PartCutter {
  readonly #parts: Iterator<LinePart, void>;
  /** Parts that come before those of the iterator, the next one last. */
  readonly #before: LinePart[] = [];

  constructor(parts: Iterable<LinePart>) {
    this.#parts = parts[Symbol.iterator]();
  }

  get isAtEnd(): boolean {
    const part = this.next();
    if (part !== undefined) this.putBack(part);
    return part === undefined;
  }

  /** The next part; undefined at the end. */
  next(): LinePart | undefined {
    const part = this.#before.pop();
    if (part !== undefined) return part;
    const next = this.#parts.next();
    return next.done === true ? undefined : next.value;
  }

  /** Puts rows before those that are left. */
  putBack(rows: LinePart): void {
    this.#before.push(rows);
  }

  /** The next `rows` rows; fewer where fewer are left. */
  take(rows: number): LinePart[] {
    const taken: LinePart[] = [];
    for (let left = rows; left > 0;) {
      const part = this.next();
      if (part === undefined) break;
      const end = Math.min(part.end, part.first + left);
      left -= end - part.first;
      taken.push({ ...part, end });
      if (end < part.end) this.putBack({ ...part, first: end });
    }
    return taken;
  }
}

/** Parts as numbers. Sending these to a thread takes a fraction of the time that as many objects take. */
export interface PackedParts {
  /** Four numbers for each part: the number of rows; the first row, or -1 where the rows are in the list; the partition; the ordinal of row 0. */
  readonly numbers: Float64Array;
  /** The concatenated lists of rows. */
  readonly rows: Uint32Array;
}

const numbersOfPart = 4;

/** Packs parts. */
export function packParts(parts: readonly LinePart[]): PackedParts {
  const numbers = new Float64Array(parts.length * numbersOfPart);
  const listed = parts.reduce((sum, { rows, first, end }) => sum + (rows === null ? 0 : end - first), 0);
  const rows = new Uint32Array(listed);
  let listedRows = 0;
  for (const [i, { rows: list, first, end, partition, ordinalOfRow0 }] of parts.entries()) {
    numbers.set([end - first, list === null ? first : -1, partition, ordinalOfRow0], i * numbersOfPart);
    if (list === null) continue;
    rows.set(list.subarray(first, end), listedRows);
    listedRows += end - first;
  }
  return { numbers, rows };
}

/** Unpacks what `packParts` packed. */
export function* unpackParts({ numbers, rows }: PackedParts): Generator<LinePart> {
  let listedRows = 0;
  for (let at = 0; at < numbers.length; at += numbersOfPart) {
    const [count = 0, firstRow = 0, partition = 0, ordinalOfRow0 = 0] = numbers.subarray(at);
    const isListed = firstRow < 0;
    const first = isListed ? listedRows : firstRow;
    if (isListed) listedRows += count;
    yield { rows: isListed ? rows : null, first, end: first + count, partition, ordinalOfRow0 };
  }
}

/** Writes the parts of a table as lines, in pieces of at most `pieceBytes`. A line that is longer makes a piece of its own. */
export function writeParts(
  table: LineTable,
  parts: Iterable<LinePart>,
  pieceBytes: number,
  space: PieceSpace,
): Piece[] {
  const lines = new JsonLines(pieceBytes, space);
  const pieces: Piece[] = [];
  for (const part of parts) {
    for (let next = part.first; next < part.end;) {
      next = lines.write(table, part, next, part.end);
      if (next < part.end) pieces.push(lines.take()!);
    }
  }
  const last = lines.take();
  if (last !== null) pieces.push(last);
  return pieces;
}
