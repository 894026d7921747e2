import { assertNever } from '../../terms/assert.js';
import { parseCursor, type Position } from '../../terms/cursor.js';
import type { LineFormat } from '../../terms/line-format.js';
import type { Query } from './query.js';

const newline = 10;
const quote = 34;

/**
 * The query for the rest of an answer of which `given` rows have been given, the last one at position `last`. Always goes forward from
 * `last`: for a query for the newest `limit` matches, the first row that was given has already fixed where the answer begins.
 */
export function restOfQuery(query: Query, given: number, last: Position): Query {
  return { ...query, after: last, limit: query.limit - given };
}

/** The position of the last record in a piece of an answer. The piece consists of whole lines of the query's format. */
export function lastPosition(piece: Uint8Array, { form }: Query): Position {
  const format = form?.format ?? 'jsonl';
  const start = (format === 'csv' ? lastRecord(piece) : lastLine(piece)) + cursorAt(format);
  return parseCursor(Buffer.from(piece.subarray(start, start + 16)).toString('latin1'))!;
}

/** Offset of the cursor in a line. */
function cursorAt(format: LineFormat): number {
  switch (format) {
    case 'jsonl':
      return '{"_cursor":"'.length;
    case 'json':
      return ',{"_cursor":"'.length;
    case 'csv':
      return 0;
    default:
      return assertNever(format);
  }
}

/** Offset of the last line. */
function lastLine(piece: Uint8Array): number {
  return piece.lastIndexOf(newline, piece.length - 2) + 1;
}

/**
 * Offset of the last CSV record. A line end within a quoted value has an odd number of quotes after it; the end of a record an even number.
 */
function lastRecord(piece: Uint8Array): number {
  let quotes = 0;
  for (let at = piece.length - 2; at >= 0; at--) {
    if (piece[at] === quote) quotes++;
    else if (piece[at] === newline && quotes % 2 === 0) return at + 1;
  }
  return 0;
}
