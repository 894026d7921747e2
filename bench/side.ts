import type { AnswerDigest } from './answer-digest.js';
import type { Question } from './question.js';
import type { RecordSet } from './record-set.js';

/**
 * The sides of the comparison: three stores of ours, and the peers. Four have indexes, and are asked for needles alone. The last four answer
 * from Parquet files that DuckDB wrote, where they lie (`--archive`): DuckDB itself, ClickHouse, and ours before and after they are indexed.
 */
export const sideNames = [
  'logstrata',
  'logstrata-unindexed',
  'logstrata-zstd',
  'duckdb',
  'duckdb-parquet',
  'clickhouse',
  'clickhouse-zstd',
  'sqlite',
  'ripgrep',
  'clickhouse-indexed',
  'duckdb-parquet-bloom',
  'duckdb-our-parquet',
  'sqlite-indexed',
  'duckdb-files',
  'clickhouse-files',
  'logstrata-in-place',
  'logstrata-in-place-indexed',
] as const;
export type SideName = (typeof sideNames)[number];

/** Whether a side is a peer with an index for needles. It stands beside the others and is not taken for the best of them. */
export function isIndexed(side: string): boolean {
  return indexedSides.some((name) => name === side);
}

const indexedSides: readonly SideName[] = [
  'clickhouse-indexed',
  'duckdb-parquet-bloom',
  'duckdb-our-parquet',
  'sqlite-indexed',
];

/** What is asked about an archive: the files, and our own segments beside them. */
export const archiveSides: readonly SideName[] = [
  'logstrata',
  'duckdb-files',
  'clickhouse-files',
  'logstrata-in-place',
  'logstrata-in-place-indexed',
];

/** Whether a side answers from files that lie there. */
export function isOverFiles(side: SideName): boolean {
  return side !== 'logstrata' && archiveSides.includes(side);
}

/** Programs to compare with, as `--peers` names them. */
export const peerNames = ['duckdb', 'clickhouse', 'sqlite', 'ripgrep'] as const;
export type PeerName = (typeof peerNames)[number];

/** The program that a side belongs to; null for ours. */
export function peerOf(side: SideName): PeerName | null {
  return peerNames.find((peer) => side === peer || side.startsWith(`${peer}-`)) ?? null;
}

/** What a side is made with. */
export interface SideOptions {
  readonly side: SideName;
  readonly set: RecordSet;
  /** A folder of its own, for its files. */
  readonly folder: string;
  /** Threads that it may use. */
  readonly threads: number;
  /** Memory for decoded columns, ours. */
  readonly cacheBytes: number;
}

/** One program with one set of records. */
export interface Side {
  /** Name and version of the program, for the record. */
  version(): Promise<string>;
  /** Loads the set into the side's folder, which is empty; durable once it returns. */
  load(): Promise<void>;
  /** Bytes that the loaded set takes, indexes included. */
  bytesOnDisk(): Promise<number>;
  /** Opens what was loaded. Opening again after `close` has empty caches. */
  open(): Promise<void>;
  /** Whether this side can be asked such a question at all. */
  answers(question: Question): boolean;
  /** Answers in JSON Lines, whole, into `take`; without `take` the answer is made all the same, and dropped. */
  ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void>;
  close(): Promise<void>;
}

/** What loading cost. */
export interface LoadFigures {
  readonly seconds: number;
  readonly bytes: number;
  /** Largest resident memory of the process that loaded. */
  readonly rssBytes: number;
}

/** What the process of a side is asked to do. */
export type SideRequest =
  | { readonly kind: 'version' }
  | { readonly kind: 'load' }
  | { readonly kind: 'open' }
  | { readonly kind: 'close' }
  | { readonly kind: 'answers'; readonly question: Question }
  | { readonly kind: 'check'; readonly question: Question }
  /** Runs the question until `budgetMs` have passed, at least once and at most `runsMax` times. */
  | {
      readonly kind: 'time';
      readonly question: Question;
      readonly budgetMs: number;
      readonly runsMax: number;
    };

/** The answer to each kind of request. */
export interface SideReplies {
  version: string;
  load: LoadFigures;
  open: null;
  close: null;
  answers: boolean;
  check: AnswerDigest;
  /** Milliseconds of each run. */
  time: number[];
}
