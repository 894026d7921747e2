import type { AttachStatus } from '../../agents/archive/attach-status.js';
import type { ImportStatus } from '../../agents/archive/import-status.js';
import type { CollectStatus } from '../../agents/collect/logs/collect-counts.js';
import type { ArchiveFigures } from '../../engine/index.js';
import type { QueryTally } from '../route/query-tally.js';

/** What a server has done and how it stands, as it is when somebody asks. */
export interface ServerFigures {
  readonly version: string;
  readonly transport: string;
  readonly isReady: boolean;
  readonly archive: ArchiveFigures;
  readonly queries: QueryFigures;
  /** By agent; empty where nothing is collected. */
  readonly collecting: Readonly<Record<string, CollectStatus>>;
  readonly importing: Readonly<Record<string, ImportStatus>>;
  readonly attaching: Readonly<Record<string, AttachStatus>>;
  /** Wrong tokens, by listener. */
  readonly wrongTokens: Readonly<Record<string, number>>;
  /** By what they are for. */
  readonly threads: Readonly<Record<string, ThreadFigures>>;
}

export interface QueryFigures {
  readonly tally: QueryTally;
  readonly slow: number;
  readonly running: number;
  readonly waiting: number;
  /** Answers under way, those that wait for their client included. */
  readonly answers: number;
  /** Queries that run at once. */
  readonly runningMax: number;
}

export interface ThreadFigures {
  readonly busy: number;
  /** Jobs that wait for one. */
  readonly waiting: number;
  /** At most. */
  readonly threads: number;
}
