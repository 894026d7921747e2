/** Names of the sets of records that are measured. */
export type SetName = 'web' | 'app';

/** The column of each set in which no two records have the same value. */
export const idColumns: Readonly<Record<SetName, string>> = { web: 'request_id', app: 'trace_id' };

/**
 * What kind of values a column has: `word` is text that repeats (a status, a browser), so that a peer may keep a dictionary
 * of it, `text` is text that does not.
 */
export type ColumnKind = 'time' | 'int' | 'float' | 'word' | 'text';

/** One field of the records of a set, in the order of the answer. */
export interface SetColumn {
  readonly name: string;
  /** Key in the JSON line. */
  readonly source: string;
  readonly kind: ColumnKind;
  readonly nullable: boolean;
}

/** One filter, in the words of the route. Times are ISO 8601 in UTC. */
export interface Filter {
  readonly column: string;
  readonly op:
    'eq' | 'gt' | 'gte' | 'lt' | 'lte' | 'exact' | 'like' | 'prefix' | 'suffix' | 'since' | 'until' | 'in';
  /** Several for `in` alone. */
  readonly value: string | number | readonly string[];
}

/**
 * A record to page from. `seq` is its number in the set, counted from 1, which peers have for a `_cursor`; 0 stands before
 * every record. `key` finds that record alone, so that its `_cursor` with us can be asked for.
 */
export interface Anchor {
  readonly seq: number;
  readonly key: Filter | null;
}

/** Ids of the questions, in the order in which they are asked. */
export const questionIds = [
  'newest',
  'newest-errors',
  'id-once',
  'id-nowhere',
  'id-once-unfiltered',
  'id-nowhere-unfiltered',
  'id-once-cold',
  'id-once-unfiltered-cold',
  'request-once',
  'request-nowhere',
  'request-in',
  'request-once-cold',
  'request-nowhere-cold',
  'common-word',
  'prefix-status-day',
  'rare-address',
  'page-after',
  'page-before',
  'three-filters',
  'count-hour',
  'count-top',
  'count-cross',
  'count-sum',
  'bulk',
  'app-newest',
  'app-errors',
  'app-name',
  'app-trace',
  'app-trace-nowhere',
  'app-page-after',
] as const;
export type QuestionId = (typeof questionIds)[number];

/** What a question about numbers of records groups them by; by neither is the sum. */
export interface Counting {
  /** Hours of the column `time`, ascending. */
  readonly byHour: boolean;
  /** The values of a column: the most frequent `top`, or with hours each of those. */
  readonly column?: string;
  readonly top: number;
}

/** One question that every side is asked, in terms that each puts into its own language. */
export interface Question {
  readonly id: QuestionId;
  readonly title: string;
  readonly set: SetName;
  readonly limit: number;
  readonly after?: Anchor;
  readonly before?: Anchor;
  readonly filters: readonly Filter[];
  /** It asks how many records there are, and the answer has lines `hour`, `value`, `count`. */
  readonly counting?: Counting;
  /** Records that the answer must have, where the generator knows. */
  readonly rowsExpected?: number;
  /** The limit is larger than the answer, so a peer need not say one (a sort for the first n costs more than a plain one). */
  readonly isWhole?: boolean;
  /** Ask our store that has no gram filter. */
  readonly isUnindexed?: boolean;
  /** Ask with nothing in the caches but those of the operating system. */
  readonly isCold?: boolean;
  /** It asks for one record or none: by a whole value, for which peers have indexes, or by a text in it, which `grep` finds as well. */
  readonly needle?: 'value' | 'text';
  /** What we want to reach with 10 M records, in milliseconds. */
  readonly targetMs?: number;
}
