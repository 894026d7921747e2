import type { AnswerDigest } from './answer-digest.js';
import type { Question } from './question.js';
import type { RecordSet } from './record-set.js';

/**
 * The sides of the comparison: our stores and the peers. Four peers have indexes, and are only asked for needles. The last four query
 * Parquet files that DuckDB wrote in place (`--archive`): DuckDB itself, ClickHouse, and our side before and after the files are indexed.
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

/** Whether a side is a peer with an index for needles. Such a side is listed separately and can't be the best peer. */
export function isIndexed(side: string): boolean {
  return indexedSides.some((name) => name === side);
}

const indexedSides: readonly SideName[] = [
  'clickhouse-indexed',
  'duckdb-parquet-bloom',
  'duckdb-our-parquet',
  'sqlite-indexed',
];

/** The sides of the archive benchmark: those that query the files, and our own segments for comparison. */
export const archiveSides: readonly SideName[] = [
  'logstrata',
  'duckdb-files',
  'clickhouse-files',
  'logstrata-in-place',
  'logstrata-in-place-indexed',
];

/** Whether a side queries the Parquet files in place. */
export function isOverFiles(side: SideName): boolean {
  return side !== 'logstrata' && archiveSides.includes(side);
}

/** The programs to compare with, as `--peers` names them. */
export const peerNames = ['duckdb', 'clickhouse', 'sqlite', 'ripgrep'] as const;
export type PeerName = (typeof peerNames)[number];

/** The program of a side; null for ours. */
export function peerOf(side: SideName): PeerName | null {
  return peerNames.find((peer) => side === peer || side.startsWith(`${peer}-`)) ?? null;
}

/** The options that a side is made with. */
export interface SideOptions {
  readonly side: SideName;
  readonly set: RecordSet;
  /** The folder of this side. */
  readonly folder: string;
  /** Number of threads that it may use. */
  readonly threads: number;
  /** Bytes of memory for decoded columns; only for our sides. */
  readonly cacheBytes: number;
}

/** A program with a set of records. */
export interface Side {
  /** Name and version of the program, for the result. */
  version(): Promise<string>;
  /** Loads the set into the side's empty folder. The records are durable when it resolves. */
  load(): Promise<void>;
  /** Size of the loaded set in bytes, indexes included. */
  bytesOnDisk(): Promise<number>;
  /** Opens the loaded set. After `close` and another `open` the caches are empty. */
  open(): Promise<void>;
  /** Whether this side can answer such a question. */
  answers(question: Question): boolean;
  /** Passes the whole answer as JSON Lines to `take`. Without `take` the answer is made as well, but dropped. */
  ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void>;
  close(): Promise<void>;
}

/** The cost of loading. */
export interface LoadFigures {
  readonly seconds: number;
  readonly bytes: number;
  /** The largest resident set of the process that loaded. */
  readonly rssBytes: number;
}

/** The requests to the process of a side. */
export type SideRequest =
  | { readonly kind: 'version' }
  | { readonly kind: 'load' }
  | { readonly kind: 'open' }
  | { readonly kind: 'close' }
  | { readonly kind: 'answers'; readonly question: Question }
  | { readonly kind: 'check'; readonly question: Question }
  /** Runs the question until `budgetMs` have passed; at least once, at most `runsMax` times. */
  | {
      readonly kind: 'time';
      readonly question: Question;
      readonly budgetMs: number;
      readonly runsMax: number;
    };

/** The reply to each kind of request. */
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
