import { JsonLines, type LineTable, type PlacedRows } from './json-lines.js';
import type { Matches } from './materialise.js';
import type { PieceSpace } from './piece-space.js';
import { countInRange, listSelected } from './selection.js';

/** Rows of one row group whose positions go together: those at [first, end) of the list, or these rows where there is none. */
export interface LinePart extends PlacedRows {
  readonly first: number;
  readonly end: number;
}

/** The rows that an answer takes from one unit, in its order. */
export function* partsOf({ unit, selection, skip, take }: Matches): Generator<LinePart> {
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
    } else {
      const rows = new Uint32Array(count);
      listSelected(selection, range, rows);
      yield { rows, first: skipped, end: skipped + taken, partition, ordinalOfRow0 };
    }
  }
}

/** How many rows the parts have. */
export function rowsOfParts(parts: readonly LinePart[]): number {
  return parts.reduce((sum, { first, end }) => sum + end - first, 0);
}

/** Cuts the parts into lists of `rows` rows each, the last of what is left. */
export function* cutParts(parts: Iterable<LinePart>, rows: number): Generator<LinePart[]> {
  let cut: LinePart[] = [];
  let left = rows;
  for (const part of parts) {
    for (let first = part.first; first < part.end;) {
      const end = Math.min(part.end, first + left);
      // Copies, because whoever is sent a view is sent all of its buffer.
      if (part.rows === null) cut.push({ ...part, first, end });
      else cut.push({ ...part, rows: part.rows.slice(first, end), first: 0, end: end - first });
      left -= end - first;
      first = end;
      if (left > 0) continue;
      yield cut;
      cut = [];
      left = rows;
    }
  }
  if (cut.length > 0) yield cut;
}

/** The parts as lines, in pieces of at most `pieceBytes`; only a line that is longer by itself makes a longer one. */
export function writeParts(
  table: LineTable,
  parts: readonly LinePart[],
  pieceBytes: number,
  space: PieceSpace,
): Uint8Array[] {
  const lines = new JsonLines(pieceBytes, space);
  const pieces: Uint8Array[] = [];
  const takePiece = (): void => {
    const piece = lines.take();
    if (piece !== null) pieces.push(piece);
  };
  for (const part of parts) {
    for (let next = part.first; next < part.end;) {
      next = lines.write(table, part, next, part.end);
      if (next < part.end) takePiece();
    }
  }
  takePiece();
  return pieces;
}
