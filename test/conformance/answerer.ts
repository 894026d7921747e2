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
 * States of a server that cases require: all query slots are taken; it is shutting down; every query exceeds its time limit;
 * `server.cors.origin` is `https://example.org`.
 */
export type ServerState = 'busy' | 'stopping' | 'late' | 'cors';

export interface HttpRequest {
  readonly method: string;
  /** The request target in the form of the request line. */
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
   * Starts a request on the present state, and returns a function that reads its answer. Without HTTP, only the target is used. The body
   * of an answer other than 200 is the JSON of the problem.
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
