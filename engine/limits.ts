/**
 * Every bound of the engine, with its reason. Units come last in the names.
 */

/** A row group ends at this many rows: 32 Ki costs 2 % more disk, 128 Ki gains 1.6 % and doubles the scan unit. */
export const rowGroupRowsMax = 64 * 1024;

/** …or at this many decoded bytes, so that one row group always fits the memory a query reserves. */
export const rowGroupBytesMax = 64 * 1024 * 1024;

/** A dictionary ends here: its codes then fit 16 bits, which is what the scan kernels read. */
export const dictionaryEntriesMax = 64 * 1024;

/** A sealed segment ends at this many row groups: its footer stays small, and a rewrite stays a short job. */
export const segmentRowGroupsMax = 64;

/** A hot segment is sealed at this many rows or bytes: it becomes exactly one row group. */
export const hotRowsMax = rowGroupRowsMax;
export const hotBytesMax = rowGroupBytesMax;

/** One value of a string field; a longer line is rejected (and kept) before it gets here. */
export const valueBytesMax = 16 * 1024 * 1024;

/** One line of input; longer ones are rejected and kept. */
export const lineBytesMax = 1024 * 1024;

/** Fields of one agent: each is a column chunk in every row group. */
export const fieldsMax = 1000;

/** Strings up to this length get byte statistics in the footer; longer ones would bloat it and prune little. */
export const statisticsBytesMax = 256;

/** Decoded columns kept in memory unless configured otherwise. */
export const columnCacheBytesDefault = 256 * 1024 * 1024;

/** A piece of an answer handed to the caller at once; bounds the memory of a streaming response. */
export const answerBytesMax = 256 * 1024;

/** Filters in one query: each costs a pass over a column. */
export const predicatesMax = 100;

/** Ordinals of a partition have 40 bits, from 1 on (`semantics.md`, "A cursor is a position"). */
export const ordinalMax = 2 ** 40 - 1;

/** Partitions have 24 bits: hours since the epoch, up to the year 3883. */
export const partitionMax = 2 ** 24 - 1;
