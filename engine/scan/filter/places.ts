import {
  inlineCompareBytesMax,
  inlineMatchesMax,
  inlineRowGroupsMax,
  inlineSearchBytesMax,
} from '../../terms/limits.js';

/** What the thread that answers a query does by itself, at most. */
export interface InlineLimits {
  /** Bytes of texts that it searches. */
  readonly searchedBytes: number;
  /** Row groups whose values it compares, and bytes of their columns. */
  readonly comparedRowGroups: number;
  readonly comparedBytes: number;
  /** Rows that it finds: it has to write them, too. */
  readonly matches: number;
  /** Where one row in so many is left, or fewer, texts are compared row by row and not searched as one. */
  readonly rowsForOneLeft: number;
}

/** What has been measured to pay: the reasons stand with the limits. */
export const inlineLimits: InlineLimits = {
  searchedBytes: inlineSearchBytesMax,
  comparedRowGroups: inlineRowGroupsMax,
  comparedBytes: inlineCompareBytesMax,
  matches: inlineMatchesMax,
  rowsForOneLeft: 64,
};

/** What the thread that answers a query has done by itself. */
export interface InlineWork {
  searchedBytes: number;
  /** Row groups that it has looked at, and those of them that no dictionary alone has ruled out. */
  rowGroups: number;
  comparedRowGroups: number;
  comparedBytes: number;
  matches: number;
}

/** What is known of a row group that is to be narrowed down to its matching rows. */
export interface RowGroupFacts {
  readonly hasThreads: boolean;
  /** All columns that may be needed are in memory. */
  readonly isInMemory: boolean;
  /** No text has to be searched, as far as is known. */
  readonly isCheap: boolean;
}

/**
 * Who narrows a row group: the thread that answers, when it needs the rows; a thread, together with other row groups in memory; or
 * the thread that answers, ahead of its need, with what can be waited for done by others.
 */
export type RowGroupPlace = 'here' | 'together' | 'ahead';

/** Chooses who narrows a row group. */
export function placeOfRowGroup(facts: RowGroupFacts, done: InlineWork, own: InlineLimits): RowGroupPlace {
  if (!facts.hasThreads) return 'here';
  // A little that is in memory is searched sooner than handed over.
  if (!facts.isInMemory || done.searchedBytes > own.searchedBytes) return 'ahead';
  // Where dictionaries rule out most row groups there is little to hand over.
  const comparesMost = done.comparedRowGroups >= Math.max(own.comparedRowGroups, done.rowGroups / 2);
  const isMuch = done.comparedBytes >= own.comparedBytes || done.matches >= own.matches;
  return comparesMost && isMuch && facts.isCheap ? 'together' : 'here';
}

/** What is known of a column of texts that is to be searched. */
export interface TextFacts {
  readonly hasThreads: boolean;
  /** Threads can read it where it lies. */
  readonly isShared: boolean;
  readonly textBytes: number;
  readonly rows: number;
  /** Rows that predicates asked before have left. */
  readonly rowsLeft: number;
}

/** How a column of texts is searched: each remaining row by itself, or all rows as one text, by the thread that answers or by another. */
export type TextPlace = 'each row' | 'here' | 'thread';

/** Chooses how a column of texts is searched. The first one is always searched by the thread that answers: it may be the only one. */
export function placeOfText(facts: TextFacts, done: InlineWork, own: InlineLimits): TextPlace {
  if (facts.rowsLeft * own.rowsForOneLeft < facts.rows) return 'each row';
  const isMuch = done.searchedBytes > 0 && done.searchedBytes + facts.textBytes > own.searchedBytes;
  return isMuch && facts.hasThreads && facts.isShared ? 'thread' : 'here';
}

/** When columns are searched without keeping them in memory. */
export interface StreamLimits {
  /** Each needle costs a search of its own: with more of them, decoding the column takes less time. */
  readonly needles: number;
  /** Where more than one column in so many may hold a match, the columns have to be decoded after all. */
  readonly columnsPerMatch: number;
}

/** What has been measured to pay. */
export const streamLimits: StreamLimits = { needles: 4, columnsPerMatch: 8 };

/** How many columns have been searched for a predicate without keeping them, and how many of these may hold a match. */
export interface StreamedSoFar {
  readonly searched: number;
  readonly mayMatch: number;
}

/** Whether a text is rare enough to search a further column for it without keeping the column. The first match is no sign of a frequent text. */
export function isRare({ searched, mayMatch }: StreamedSoFar, { columnsPerMatch }: StreamLimits): boolean {
  return mayMatch <= 1 + searched / columnsPerMatch;
}
