import { parseCursor, type Position } from '../../terms/cursor.js';
import type { Query } from './query.js';

const newline = 10;
const cursorAt = '{"_cursor":"'.length;

/**
 * The query for the rest of an answer of which `given` rows have been given, the last one at position `last`. It goes forward from there:
 * the first row that was given has fixed how far back the newest `limit` matches reach.
 */
export function restOfQuery(query: Query, given: number, last: Position): Query {
  return { ...query, after: last, limit: query.limit - given };
}

/** How many lines a piece of an answer has. */
export function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) lines++;
  return lines;
}

/** The position of the last record in a piece of an answer. */
export function lastPosition(piece: Uint8Array): Position {
  const start = piece.lastIndexOf(newline, piece.length - 2) + 1;
  const cursor = Buffer.from(piece.subarray(start + cursorAt, start + cursorAt + 16)).toString('latin1');
  return parseCursor(cursor)!;
}
