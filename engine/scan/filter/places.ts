import {
  inlineCompareBytesMax,
  inlineMatchesMax,
  inlineRowGroupsMax,
  inlineSearchBytesMax,
} from '../../terms/limits.js';

/** Limits of the work that the answering thread does itself. */
export interface InlineLimits {
  /** Bytes of texts that it searches. */
  readonly searchedBytes: number;
  /** Row groups whose values it compares, and bytes of their columns. */
  readonly comparedRowGroups: number;
  readonly comparedBytes: number;
  /** Rows that it finds. It also has to write them. */
  readonly matches: number;
  /** Where fewer than one row in this many is left, texts are compared row by row; else all rows are searched as one text. */
  readonly rowsForOneLeft: number;
}

/** Values that were measured to be fastest. The reasons are given with the limits. */
export const inlineLimits: InlineLimits = {
  searchedBytes: inlineSearchBytesMax,
  comparedRowGroups: inlineRowGroupsMax,
  comparedBytes: inlineCompareBytesMax,
  matches: inlineMatchesMax,
  rowsForOneLeft: 64,
};

/** The work that the answering thread has done itself. */
export interface InlineWork {
  searchedBytes: number;
  /** Row groups that it has filtered, and how many of those were not ruled out by dictionaries alone. */
  rowGroups: number;
  comparedRowGroups: number;
  comparedBytes: number;
  matches: number;
}

/** What is known of a row group before it is filtered. */
export interface RowGroupFacts {
  readonly hasThreads: boolean;
  /** Whether all columns that may be needed are in memory. */
  readonly isInMemory: boolean;
  /** Whether, as far as is known, no text has to be searched. */
  readonly isCheap: boolean;
}

/**
 * Who filters a row group. `here`: the answering thread, when it needs the rows. `together`: another thread, in one job with other row
 * groups in memory. `ahead`: the answering thread, before it needs the rows, while threads do the reading and searching that it would wait
 * for.
 */
export type RowGroupPlace = 'here' | 'together' | 'ahead';

/** Chooses who filters a row group. */
export function placeOfRowGroup(facts: RowGroupFacts, done: InlineWork, own: InlineLimits): RowGroupPlace {
  if (!facts.hasThreads) return 'here';
  // Searching a little text that is in memory takes less time than handing it over.
  if (!facts.isInMemory || done.searchedBytes > own.searchedBytes) return 'ahead';
  // Where dictionaries rule out most row groups there is little work to hand over.
  const comparesMost = done.comparedRowGroups >= Math.max(own.comparedRowGroups, done.rowGroups / 2);
  const isMuch = done.comparedBytes >= own.comparedBytes || done.matches >= own.matches;
  return comparesMost && isMuch && facts.isCheap ? 'together' : 'here';
}

/** What is known of a text column before it is searched. */
export interface TextFacts {
  readonly hasThreads: boolean;
  /** Whether threads can read the column in place. */
  readonly isShared: boolean;
  readonly textBytes: number;
  readonly rows: number;
  /** Number of rows that earlier predicates have left. */
  readonly rowsLeft: number;
}

/**
 * How a text column is searched: each remaining row by itself, or all rows as one text by the answering thread (`here`) or by another
 * (`thread`).
 */
export type TextPlace = 'each row' | 'here' | 'thread';

/** Chooses how a text column is searched. The answering thread always searches the first one itself, because it may be the only one. */
export function placeOfText(facts: TextFacts, done: InlineWork, own: InlineLimits): TextPlace {
  if (facts.rowsLeft * own.rowsForOneLeft < facts.rows) return 'each row';
  const isMuch = done.searchedBytes > 0 && done.searchedBytes + facts.textBytes > own.searchedBytes;
  return isMuch && facts.hasThreads && facts.isShared ? 'thread' : 'here';
}

/** Limits for searching columns without keeping them in memory. */
export interface StreamLimits {
  /** The most needles. Each needle is searched for separately; with more of them, decoding the column takes less time. */
  readonly needles: number;
  /** Where more than one in this many columns may have a match, too many columns have to be decoded after all. */
  readonly columnsPerMatch: number;
}

/** Values that were measured to be fastest. */
export const streamLimits: StreamLimits = { needles: 4, columnsPerMatch: 8 };

/** How many columns have been searched for a predicate without keeping them, and how many of these may have a match. */
export interface StreamedSoFar {
  readonly searched: number;
  readonly mayMatch: number;
}

/**
 * Whether a text is rare enough to search a further column for it without keeping the column. One match alone does not make a text
 * frequent.
 */
export function isRare({ searched, mayMatch }: StreamedSoFar, { columnsPerMatch }: StreamLimits): boolean {
  return mayMatch <= 1 + searched / columnsPerMatch;
}
