/** Names of the sets of records. */
export type SetName = 'web' | 'app';

/** The column of each set that has a different value in every record. */
export const idColumns: Readonly<Record<SetName, string>> = { web: 'request_id', app: 'trace_id' };

/**
 * The kind of a column's values. `word` is text that repeats (a method, a browser), for which a peer may use a dictionary; `text` does not
 * repeat.
 */
export type ColumnKind = 'time' | 'int' | 'float' | 'word' | 'text';

/** A field of a set's records. Fields are listed in the order of the answer. */
export interface SetColumn {
  readonly name: string;
  /** The key in the JSON line. */
  readonly source: string;
  readonly kind: ColumnKind;
  readonly nullable: boolean;
}

/** A filter in the terms of our route. Times are ISO 8601 in UTC. */
export interface Filter {
  readonly column: string;
  readonly op:
    | 'eq'
    | 'gt'
    | 'gte'
    | 'lt'
    | 'lte'
    | 'exact'
    | 'like'
    | 'prefix'
    | 'suffix'
    | 'regex'
    | 'since'
    | 'until'
    | 'in';
  /** Several values only for `in`. */
  readonly value: string | number | readonly string[];
}

/**
 * A record to page from. `seq` is its number in the set, counted from 1, which peers use in place of `_cursor`; 0 is before every record.
 * `key` is a filter that matches only this record, to find out its `_cursor` in our store.
 */
export interface Anchor {
  readonly seq: number;
  readonly key: Filter | null;
}

/** The ids of the questions, in the order in which they are asked. */
export const questionIds = [
  'newest',
  'newest-errors',
  'id-once',
  'id-nowhere',
  'id-once-unfiltered',
  'id-nowhere-unfiltered',
  'id-once-cold',
  'id-once-unfiltered-cold',
  'pattern-once',
  'pattern-all',
  'request-once',
  'request-nowhere',
  'request-in',
  'request-once-cold',
  'request-nowhere-cold',
  'common-word',
  'prefix-status-day',
  'rare-address',
  'either-rare',
  'page-after',
  'page-before',
  'three-filters',
  'count-hour',
  'count-top',
  'count-cross',
  'count-sum',
  'count-bytes',
  'avg-hour',
  'p99-path',
  'bulk',
  'app-newest',
  'app-errors',
  'app-name',
  'app-trace',
  'app-trace-nowhere',
  'app-page-after',
] as const;
export type QuestionId = (typeof questionIds)[number];

/** What a counting question groups by; by neither, it counts all records. */
export interface Counting {
  /** By hours of the column `time`, ascending. */
  readonly byHour: boolean;
  /** By the values of a column: its most frequent `top` values; with `byHour`, these for each hour. */
  readonly column?: string;
  readonly top: number;
  /** A number of another column to tell of each group. */
  readonly number?: { readonly column: string; readonly fn: 'avg' | 'p99' };
}

/** A question to every side, in terms that each side translates into its own language. */
export interface Question {
  readonly id: QuestionId;
  readonly title: string;
  readonly set: SetName;
  readonly limit: number;
  readonly after?: Anchor;
  readonly before?: Anchor;
  readonly filters: readonly Filter[];
  /** Filters of which one has to match. */
  readonly any?: readonly Filter[];
  /** Set where the question asks for counts. The answer then has lines with `hour`, `value` and `count`. */
  readonly counting?: Counting;
  /** The number of records that the answer must have, where it is known. */
  readonly rowsExpected?: number;
  /** Whether the limit exceeds the answer. A peer may leave it out then, as sorting for the first n costs more than a plain sort. */
  readonly isWhole?: boolean;
  /** Whether our side of the question is the store without gram filters. */
  readonly isUnindexed?: boolean;
  /** Whether all caches but those of the operating system are empty. */
  readonly isCold?: boolean;
  /**
   * Set where the question asks for one record or none: by a whole value, for which peers have indexes, or by a text within a value, which
   * `grep` can find as well.
   */
  readonly needle?: 'value' | 'text';
  /** The target with 10 M records, in milliseconds. */
  readonly targetMs?: number;
}
