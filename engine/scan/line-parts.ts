import { JsonLines, type JsonColumns } from './json-lines.js';
import type { Matches } from './materialise.js';
import { listSelected } from './selection.js';

/** Rows of one row group, and the positions they stand at: the ordinal of a row is `ordinalOfRow0` + row. */
export interface LinePart {
  readonly rows: Uint32Array;
  readonly partition: number;
  readonly ordinalOfRow0: number;
}

/** The rows that an answer takes from one unit, in its order. */
export function partsOf(matches: Matches): LinePart[] {
  const parts: LinePart[] = [];
  let { skip, take } = matches;
  for (const range of matches.unit.ranges) {
    if (take === 0) break;
    const listed = new Uint32Array(range.rows);
    const count = listSelected(matches.selection, range, listed);
    const from = Math.min(skip, count);
    const to = Math.min(count, from + take);
    skip -= from;
    take -= to - from;
    if (to === from) continue;
    const ordinalOfRow0 = range.firstOrdinal - range.firstRow;
    parts.push({ rows: listed.slice(from, to), partition: range.partition, ordinalOfRow0 });
  }
  return parts;
}

/** The first `rows` rows of the parts, and the others. */
export function cutParts(parts: readonly LinePart[], rows: number): { first: LinePart[]; rest: LinePart[] } {
  const first: LinePart[] = [];
  let left = rows;
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    if (part.rows.length > left) {
      // Copies, because whoever is sent a view is sent all of its buffer.
      if (left > 0) first.push({ ...part, rows: part.rows.slice(0, left) });
      return { first, rest: [{ ...part, rows: part.rows.subarray(left) }, ...parts.slice(i + 1)] };
    }
    first.push({ ...part, rows: part.rows.slice() });
    left -= part.rows.length;
  }
  return { first, rest: [] };
}

/** How many rows the parts have. */
export function rowsOfParts(parts: readonly LinePart[]): number {
  return parts.reduce((sum, { rows }) => sum + rows.length, 0);
}

/** The parts as lines, in pieces of at most `pieceBytes`; only a line that is longer by itself makes a longer one. */
export function writeParts(
  columns: JsonColumns,
  parts: readonly LinePart[],
  pieceBytes: number,
): Uint8Array<ArrayBuffer>[] {
  const lines = new JsonLines(pieceBytes);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const takePiece = (): void => {
    const piece = lines.take();
    // What moves between threads takes its whole buffer along: a small part of one goes alone.
    if (piece !== null)
      pieces.push(piece.length * 2 < piece.buffer.byteLength ? new Uint8Array(piece) : piece);
  };
  for (const { rows, partition, ordinalOfRow0 } of parts) {
    for (let next = 0; next < rows.length;) {
      next = lines.write(columns, rows, next, rows.length, partition, ordinalOfRow0);
      if (next < rows.length) takePiece();
    }
  }
  takePiece();
  return pieces;
}
