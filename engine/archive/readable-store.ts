import type { CountQuery, Counts } from '../scan/plan/count.js';
import type { Query } from '../scan/plan/query.js';
import type { SelectedRows } from '../scan/selected-rows.js';
import type { Schema } from '../terms/schema.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import type { SeenState } from './seen-state.js';
import type { Scan, ScanOptions } from '../scan/plan/scan.js';

/** The queries on one agent's records: those that also a reader on another machine can answer. */
export interface ReadableStore {
  readonly name: string;
  readonly schema: Schema;
  /** A snapshot of the newest committed state. In a process that does not write, it looks for a newer state first. */
  snapshot(): Promise<Snapshot>;
  /** Starts a query on the newest state. Its errors come from `lines`. */
  scan(query: Query, options?: ScanOptions): Promise<Scan>;
  /**
   * Calls `call` soon after records become visible or the fields change. Returns a function that ends this. When another process
   * writes, its state is polled while there are listeners.
   */
  onChange(call: () => void): () => void;
  /** The newest state, to be compared with later ones. */
  seen(): Promise<SeenState>;
  /**
   * Scans the records that the newest state has and the earlier state `seen` does not have; all records when `seen` is null. Also
   * returns the state that it reads. Throws `conflict` when the fields have changed since `seen`.
   */
  scanAdded(query: Query, seen: SeenState | null, options?: ScanOptions): Promise<ScanOfState>;
  /**
   * Scans the records of an earlier state, as far as they are still stored. Throws `conflict` when the fields have changed since `seen`.
   */
  scanSeen(query: Query, seen: SeenState, options?: ScanOptions): Promise<Scan>;
  /** Answers the same queries as `scan`, as columns instead of lines, in pieces of at most one row group. */
  selectRows(
    query: Query,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<SelectedRows>;
  /** Counts the matching records exactly, by time bucket, by the values of a field, or by both. Throws as `countRecords` does. */
  count(query: CountQuery, options?: { readonly signal?: AbortSignal | undefined }): Promise<Counts>;
}

/** A scan with the state that it reads. */
export interface ScanOfState {
  readonly scan: Scan;
  readonly state: SeenState;
}
