import { assertNever } from '../../terms/assert.js';
import { parseCursor, type Position } from '../../terms/cursor.js';
import type { LineFormat } from '../../terms/line-format.js';
import type { Query } from './query.js';

const newline = 10;
const quote = 34;

/**
 * The query for the rest of an answer of which `given` rows have been given, the last one at position `last`. It goes forward from there:
 * the first row that was given has fixed how far back the newest `limit` matches reach.
 */
export function restOfQuery(query: Query, given: number, last: Position): Query {
  return { ...query, after: last, limit: query.limit - given };
}

/** The position of the last record in a piece of the answer to a query, which is whole lines. */
export function lastPosition(piece: Uint8Array, { form }: Query): Position {
  const format = form?.format ?? 'jsonl';
  const start = (format === 'csv' ? lastRecord(piece) : lastLine(piece)) + cursorAt(format);
  return parseCursor(Buffer.from(piece.subarray(start, start + 16)).toString('latin1'))!;
}

/** Where the cursor stands in a line. */
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

/** Where the last line begins. */
function lastLine(piece: Uint8Array): number {
  return piece.lastIndexOf(newline, piece.length - 2) + 1;
}

/** Where the last record of CSV begins: behind the last end of a line that has as many quotes behind it as close, which is an even number. */
function lastRecord(piece: Uint8Array): number {
  let quotes = 0;
  for (let at = piece.length - 2; at >= 0; at--) {
    if (piece[at] === quote) quotes++;
    else if (piece[at] === newline && quotes % 2 === 0) return at + 1;
  }
  return 0;
}
