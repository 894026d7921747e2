import type { Position } from '../../terms/cursor.js';
import type { LineFormat } from '../../terms/line-format.js';
import type { Predicate } from '../../terms/predicate.js';

export type * from '../../terms/predicate.js';

/** How an answer is written, and which fields it has. */
export interface AnswerForm {
  readonly format: LineFormat;
  /** Their places in the schema, in the order of the answer, behind the cursor; null for all of them, in the order of the schema. */
  readonly fields: readonly number[] | null;
}

/**
 * The answer is ascending by position, always. With `after`: the first `limit` matches beyond it (and before
 * `before`, if given). Without: the last `limit` matches (before `before`, if given).
 */
export interface Query {
  readonly limit: number;
  readonly after?: Position | undefined;
  readonly before?: Position | undefined;
  /** With `after`, too: the last `limit` matches. */
  readonly last?: true | undefined;
  readonly predicates: readonly Predicate[];
  /** JSON Lines with all fields where it is absent. */
  readonly form?: AnswerForm | undefined;
}

/** What a query cost. Filled while the answer is read; final once it has ended. */
export interface ScanStats {
  /** Runs within the cursor bounds. */
  runs: number;
  /** Row groups within the cursor bounds, and what became of them. */
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
  /** Columns that a text in any field was not sought in, because their filters have not its grams; of row groups that were not ruled out. */
  columnsPrunedByGram: number;
  gramPiecesRead: number;
  valuePiecesRead: number;
  /** Time to find the rows, and time to write them out (without waiting for the client). */
  selectMs: number;
  writeMs: number;
}
