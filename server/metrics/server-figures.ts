import type { AttachStatus } from '../../agents/archive/archive-attaching.js';
import type { ImportStatus } from '../../agents/archive/archive-import.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import type { ArchiveFigures } from '../../engine/index.js';
import type { QueryTally } from '../route/query-tally.js';

/** The figures of a server at the time of a request for them. */
export interface ServerFigures {
  readonly version: string;
  readonly transport: string;
  readonly isReady: boolean;
  readonly archive: ArchiveFigures;
  readonly queries: QueryFigures;
  /** By agent; empty where the server collects nothing. */
  readonly collecting: Readonly<Record<string, CollectStatus>>;
  readonly importing: Readonly<Record<string, ImportStatus>>;
  readonly attaching: Readonly<Record<string, AttachStatus>>;
  /** Number of requests with a wrong token, by listener. */
  readonly wrongTokens: Readonly<Record<string, number>>;
  /** By the pool of threads. */
  readonly threads: Readonly<Record<string, ThreadFigures>>;
}

/** The figures of the query route. */
export interface QueryFigures {
  readonly tally: QueryTally;
  readonly slow: number;
  readonly running: number;
  readonly waiting: number;
  /** Responses that are being sent, those included that wait for their client. */
  readonly answers: number;
  /** Number of queries that may run at the same time. */
  readonly runningMax: number;
}

/** The figures of a pool of threads. */
export interface ThreadFigures {
  readonly busy: number;
  /** Jobs that wait for a thread. */
  readonly waiting: number;
  /** Maximum number of threads. */
  readonly threads: number;
}
