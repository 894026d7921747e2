import type { Dataset, ModelRecord } from '../model/dataset.js';

/** Records that become visible together. */
export interface Commit {
  readonly name: string;
  readonly records: readonly ModelRecord[];
}

/** A dataset of the cases: its records by commits, and the clock of its requests. */
export interface CaseDataset extends Dataset {
  /** Also the name of the agent. */
  readonly name: string;
  readonly nowMs: number;
  readonly commits: readonly Commit[];
  readonly labels: ReadonlyMap<string, ModelRecord>;
}

/**
 * States of a server that cases ask for: all queries that may run at once are running; it is shutting down;
 * every query is past its time limit; `server.cors.origin` is `https://example.org`.
 */
export type ServerState = 'busy' | 'stopping' | 'late' | 'cors';

export interface HttpRequest {
  readonly method: string;
  /** The request target as it stands in the request line. */
  readonly target: string;
  readonly version: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  /** The body, decompressed if it was compressed. */
  readonly body: string;
  /** By lower-case names; empty without HTTP. */
  readonly headers: ReadonlyMap<string, string>;
}

/** A store with one agent, empty at first. */
export interface OpenedStore {
  /** Places the records by the rules for loaded files. */
  commit(commit: Commit): Promise<void>;
  /**
   * Starts a request, on the state of this moment, and returns what reads its answer. Where there is no HTTP only the
   * target is looked at. An answer that is not 200 has the problem's JSON as its body.
   */
  begin(request: HttpRequest): Promise<() => Promise<Answer>>;
  restart(): Promise<void>;
  compact(): Promise<void>;
  close(): Promise<void>;
}

/** A component that answers requests like the service. */
export interface Answerer {
  readonly name: string;
  /** Runs the cases that need HTTP. */
  readonly isHttp: boolean;
  open(dataset: CaseDataset, state: ServerState | undefined): Promise<OpenedStore>;
}
