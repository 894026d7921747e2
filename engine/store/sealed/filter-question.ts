import type { ValueHash } from '../../parquet/bloom-filter.js';

/** A value that is looked for, or a text that values are to contain. */
export interface Asked {
  /** Of the whole value; null where only a part of it is known. */
  readonly hash: ValueHash | null;
  /** Of an integer that four bytes hold, as those; else null. */
  readonly shortHash: ValueHash | null;
  /** Case-folded UTF-8, which gram filters are asked for; empty for what is no text. */
  readonly folded: Uint8Array;
}

/**
 * A filter of the query, or what it says of one of its fields, as the filters of segments are asked: whether one of `asked` may be in the
 * field.
 */
export interface FilterQuestion {
  /** Position in the schema of the query. */
  readonly field: number;
  /** At least one. */
  readonly asked: readonly Asked[];
  /**
   * How many questions, of which this is the last, are one filter: rows match only where one of them is answered by yes. 0 where it is not the
   * last of them, and where rows match that have none of it.
   */
  readonly concludes: number;
}

/** What stands in place of a stored field: its values were stored as others, or the segment has none. */
export const notStored = { otherwise: -1, atAll: -2 } as const;
