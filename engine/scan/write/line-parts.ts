import type { LineTable } from '../../kernels/json-rows.js';
import { JsonLines, type Piece, type PlacedRows } from './json-lines.js';
import type { PieceSpace } from './piece-space.js';
import { countInRange, listSelected, type Matches } from '../filter/selection.js';
import { lowerBound } from '../plan/lower-bound.js';

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

/** Total number of rows of the parts. */
export function rowsOfParts(parts: readonly LinePart[]): number {
  return parts.reduce((sum, { first, end }) => sum + end - first, 0);
}

/** Takes parts from the front of an answer's rows. */
export class PartCutter {
  readonly #parts: Iterator<LinePart>;
  #rest: LinePart | undefined;

  constructor(parts: Iterable<LinePart>) {
    this.#parts = parts[Symbol.iterator]();
  }

  /** The next `rows` rows; fewer where fewer are left. */
  take(rows: number): LinePart[] {
    const taken: LinePart[] = [];
    for (let left = rows; left > 0;) {
      const part = this.#rest ?? this.#next();
      if (part === undefined) break;
      const end = Math.min(part.end, part.first + left);
      left -= end - part.first;
      taken.push(end === part.end ? part : { ...part, end });
      this.#rest = end === part.end ? undefined : { ...part, first: end };
    }
    return taken;
  }

  #next(): LinePart | undefined {
    const next = this.#parts.next();
    return next.done === true ? undefined : next.value;
  }
}

/** Rows to write, and the table that has them. */
export interface TablePart {
  readonly table: LineTable;
  readonly part: LinePart;
}

/** The parts of several tables as numbers. Sending these to a thread takes a fraction of the time that as many objects take. */
export interface PackedParts {
  /**
   * Five numbers for each part: the table; the number of rows; the first row, or -1 where the rows are in the list; the partition; the
   * ordinal of row 0.
   */
  readonly numbers: Float64Array;
  /** The concatenated lists of rows. */
  readonly rows: Uint32Array;
}

const numbersOfPart = 5;

/** Packs the parts of the tables 0, 1, …. */
export function packParts(tables: readonly (readonly LinePart[])[]): PackedParts {
  const numbers = new Float64Array(tables.reduce((sum, parts) => sum + parts.length, 0) * numbersOfPart);
  const listed = (parts: readonly LinePart[]): number =>
    rowsOfParts(parts.filter(({ rows }) => rows !== null));
  const rows = new Uint32Array(tables.reduce((sum, parts) => sum + listed(parts), 0));
  let at = 0;
  let listedRows = 0;
  for (const [table, parts] of tables.entries()) {
    for (const { rows: list, first, end, partition, ordinalOfRow0 } of parts) {
      numbers.set([table, end - first, list === null ? first : -1, partition, ordinalOfRow0], at);
      at += numbersOfPart;
      if (list === null) continue;
      rows.set(list.subarray(first, end), listedRows);
      listedRows += end - first;
    }
  }
  return { numbers, rows };
}

/** Unpacks what `packParts` packed, and adds the tables. */
export function* unpackParts(
  { numbers, rows }: PackedParts,
  tables: readonly LineTable[],
): Generator<TablePart> {
  let listedRows = 0;
  for (let at = 0; at < numbers.length; at += numbersOfPart) {
    const count = numbers[at + 1]!;
    const isListed = numbers[at + 2]! < 0;
    const first = isListed ? listedRows : numbers[at + 2]!;
    if (isListed) listedRows += count;
    const place = { partition: numbers[at + 3]!, ordinalOfRow0: numbers[at + 4]! };
    const part = { rows: isListed ? rows : null, first, end: first + count, ...place };
    yield { table: tables[numbers[at]!]!, part };
  }
}

/** Writes the parts as lines, in pieces of at most `pieceBytes`. A line that is longer makes a piece of its own. */
export function writeParts(parts: Iterable<TablePart>, pieceBytes: number, space: PieceSpace): Piece[] {
  const lines = new JsonLines(pieceBytes, space);
  const pieces: Piece[] = [];
  const takePiece = (): void => {
    const piece = lines.take();
    if (piece !== null) pieces.push(piece);
  };
  for (const { table, part } of parts) {
    for (let next = part.first; next < part.end;) {
      next = lines.write(table, part, next, part.end);
      if (next < part.end) takePiece();
    }
  }
  takePiece();
  return pieces;
}
