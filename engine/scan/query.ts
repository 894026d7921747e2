import type { Position } from '../core/cursor.js';
import type { LineFormat, Predicate } from '../core/schema.js';

export type * from '../core/schema.js';

/** The format of an answer, and the fields that it has. */
export interface AnswerForm {
  readonly format: LineFormat;
  /**
   * Indices in the schema of the fields that follow the cursor, in the order of the answer. Null for all fields in the order of the schema.
   */
  readonly fields: readonly number[] | null;
}

/**
 * A query for records. The answer is always in ascending order of positions. With `after` it has the first `limit` matches after that
 * position; without `after`, or with `last`, the last `limit` matches. With `before` only records before that position can match.
 */
export interface Query {
  readonly limit: number;
  readonly after?: Position | undefined;
  readonly before?: Position | undefined;
  /** Asks for the last `limit` matches although `after` is given. */
  readonly last?: true | undefined;
  readonly predicates: readonly Predicate[];
  /** Undefined: JSON Lines with all fields. */
  readonly form?: AnswerForm | undefined;
}

/** What a query cost. The values grow while the answer is read; they are final once it has ended. */
export interface ScanStats {
  /** Runs within the cursor bounds. */
  runs: number;
  /**
   * Row groups within the cursor bounds. The counters that follow say how many of them were ruled out by what, and how many were scanned.
   */
  rowGroups: number;
  rowGroupsPrunedByTime: number;
  rowGroupsPrunedByZone: number;
  rowGroupsPrunedByValue: number;
  rowGroupsPrunedByGram: number;
  rowGroupsPrunedByDictionary: number;
  rowGroupsScanned: number;
  rowsScanned: number;
  rowsReturned: number;
  bytesRead: number;
  columnsDecoded: number;
  columnsCached: number;
  /**
   * For searches of a text in any field, and for groups of filters: columns that were not read because their filters lack the value, or
   * n-grams of the text. Counts only row groups that were not ruled out as a whole.
   */
  columnsPrunedByGram: number;
  gramPiecesRead: number;
  valuePiecesRead: number;
  /** Milliseconds spent on finding the rows, and on writing them as lines. Waiting for the client is not included. */
  selectMs: number;
  writeMs: number;
}
