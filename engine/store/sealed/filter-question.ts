import type { ValueHash } from '../../parquet/bloom-filter.js';

/** A value to look for, or a text that values should contain. */
export interface Asked {
  /** Hash of the whole value; null if only a part of it is known. */
  readonly hash: ValueHash | null;
  /** Hash of the value as a four-byte integer, if it fits; else null. */
  readonly shortHash: ValueHash | null;
  /** The case-folded UTF-8 to ask gram filters for; empty if the value is no text. */
  readonly folded: Uint8Array;
}

/**
 * A question to the filters of segments: whether a field may have one of `asked`. It stands for a filter of the query, or for the part of
 * one that concerns this field.
 */
export interface FilterQuestion {
  /** Index of the field in the query's schema. */
  readonly field: number;
  /** At least one value. */
  readonly asked: readonly Asked[];
  /**
   * The number of questions, ending with this one, that form one filter of the query: rows can only match if one of these questions is
   * answered by yes. 0 if this is not the last of them, or if rows without any of the values match too.
   */
  readonly concludes: number;
}

/** Used in place of a stored field: the segment stores the field's values with another type (`otherwise`), or does not have the field (`atAll`). */
export const notStored = { otherwise: -1, atAll: -2 } as const;
