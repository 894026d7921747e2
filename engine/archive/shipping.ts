import type { RemoteSource } from '../scan/tiered-finder.js';
import type { Directory } from '../store/disk/directory.js';
import type { Committer } from '../store/manifest/commit.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** An agent whose records are shipped, and its committer. */
export interface ShippedAgent {
  readonly state: AgentState;
  readonly committer: Committer;
}

/** The same agent, with what shipping needs that waits for its end. */
export interface AgentToShip extends ShippedAgent {
  readonly directory: Directory;
  readonly workers: WorkerPool;
  readonly now: () => number;
  readonly refresh: () => Promise<void>;
}

/** What shipping has done. */
export interface ShipResult {
  readonly segments: number;
  readonly rows: number;
  readonly bytes: number;
  /** Number of segments whose local files were removed. */
  readonly freed: number;
  /** Number of attempts that were dropped in the cluster. */
  readonly dropped: number;
}

export interface ShipOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the progress, 0…1. */
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** Which records to bring back: those of segments with records in this range of time; null for no bound. */
export interface FetchWish {
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

/** What has been brought back. */
export interface FetchResult {
  readonly units: number;
  readonly rows: number;
  /** How many of them still had their files here, so that nothing was transferred. */
  readonly stillHere: number;
}

/** What a check of the shipped records has found. */
export interface FarReport {
  readonly units: number;
  readonly records: number;
  readonly replicas: number;
  /** What a replica does not have as it was shipped. */
  readonly damages: readonly {
    readonly url: string;
    readonly unit: string;
    readonly attempt: string;
    readonly reason: string;
  }[];
  /** Rows that no manifest of this archive names. `partition` is as the server names it: the ids of unit and attempt. */
  readonly strays: readonly { readonly url: string; readonly partition: string; readonly rows: number }[];
}

/** What has been shipped for an agent since the process started. */
export interface FarCounts {
  readonly shipped: number;
  readonly rows: number;
  readonly bytes: number;
  readonly failed: number;
}

/** A shipped segment, for the log. */
export interface FarEvent {
  readonly agent: string;
  readonly rows: number;
  readonly bytes: number;
  readonly shard: number;
  readonly unit: string;
}

export interface ShippingOptions {
  readonly directory: Directory;
  readonly now: () => number;
  readonly zstdAfterMs: number | null;
  readonly onWarning: (message: string) => void;
  readonly onShipped: (event: FarEvent) => void;
}

/** Shipping that a server does by itself. */
export interface BackgroundShipping {
  counts(agent: string): FarCounts;
  /** Starts shipping if it is not running. Never throws, and returns at once. For a timer. */
  tick(agents: readonly ShippedAgent[]): void;
  /** Stops shipping. The current attempt is abandoned, and its rows are dropped later. */
  stop(): Promise<void>;
}

/** Where old records are shipped, and where they come from afterwards. */
export interface Tier {
  /** Reads the rows that are there. */
  readonly rows: RemoteSource;
  /** Ships all segments that are old enough, one by one. Segments that were published before a failure stay shipped. */
  ship(agent: AgentToShip, options?: ShipOptions): Promise<ShipResult>;
  /**
   * Brings segments back, one at a time. Their rows are only shipped again on demand. Positions and answers do not change. What was
   * brought back before a failure stays. Throws `unavailable` for an incomplete one.
   */
  fetch(agent: AgentToShip, wish: FetchWish, options?: ShipOptions): Promise<FetchResult>;
  /** Compares what every replica has with what was shipped, and looks for stray rows. */
  verify(state: AgentState, options?: ShipOptions): Promise<FarReport>;
  /** Ships in the background: one segment at a time for all agents, on a thread of its own. */
  background(options: ShippingOptions): BackgroundShipping;
}
