import { countRecords } from '../scan/count/count.js';
import { executeScan, type ScanSettings } from '../scan/answer.js';
import { addedRuns, sharedRuns } from '../scan/plan/added-runs.js';
import type { CountQuery, Counts } from '../scan/plan/count.js';
import type { Query } from '../scan/plan/query.js';
import type { Scan, ScanOptions } from '../scan/plan/scan.js';
import { selectRows, type SelectedRows } from '../scan/selected-rows.js';
import type { Snapshot, SnapshotRuns } from '../store/reading/snapshot.js';
import type { StateChanges } from '../store/reading/state-changes.js';
import { LogstrataError } from '../terms/errors.js';
import type { Schema } from '../terms/schema.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { ReadableStore, ScanOfState } from './readable-store.js';
import { SeenState } from './seen-state.js';
import { StateWatch } from './state-watch.js';

/** One agent's committed records, as far as this process knows them. */
export interface ReadableState {
  readonly agent: string;
  readonly schema: Schema;
  readonly changes: StateChanges;
  /** A snapshot of the newest state that this process knows. */
  snapshot(): Snapshot;
}

/** How a store gets its agent's newest state. */
export interface ReadingAccess {
  /** Looks for a newer state, unless the known one is new enough. */
  refresh(): Promise<void>;
  /** Whether another process writes: it may remove files that a snapshot of this process still needs. */
  readonly follows: boolean;
}

export interface ReadingContext {
  readonly state: ReadableState;
  readonly access: ReadingAccess;
  readonly workers: WorkerPool;
}

/** Answers queries on one agent's records: scans, counts, and scans of the records that were added since an earlier state. */
export class ReadingStore<Context extends ReadingContext = ReadingContext> implements ReadableStore {
  private readonly watch: StateWatch;

  constructor(readonly context: Context) {
    this.watch = new StateWatch(context.state.changes, () => this.context.access);
  }

  get name(): string {
    return this.context.state.agent;
  }

  get schema(): Schema {
    return this.context.state.schema;
  }

  async snapshot(): Promise<Snapshot> {
    await this.context.access.refresh();
    return this.context.state.snapshot();
  }

  scan(query: Query, options: ScanOptions = {}): Promise<Scan> {
    const { workers } = this.context;
    // The options are copied one by one: a spread gives the object another hidden class, and code that then reads it runs
    // slower; this costs more time than a short answer takes.
    const { signal, pieceBytes, bytesMax, lends, joins, onTurn } = options;
    const settings = { signal, pieceBytes, bytesMax, lends, joins, onTurn, workers };
    const { schema } = this;
    return this.scanOf(() => this.newestOf(schema), query, settings);
  }

  onChange(call: () => void): () => void {
    return this.watch.listen(call);
  }

  async seen(): Promise<SeenState> {
    await this.context.access.refresh();
    const { schema, runs, release } = this.context.state.snapshot();
    release();
    return new SeenState(schema, runs);
  }

  async scanAdded(query: Query, seen: SeenState | null, options: ScanOptions = {}): Promise<ScanOfState> {
    const { access, workers } = this.context;
    const schema = seen?.schema ?? this.schema;
    await access.refresh();
    const snapshot = this.snapshotOf(schema);
    const state = new SeenState(schema, snapshot.runs);
    const runs = seen === null ? snapshot.runs : addedRuns(seen.runs, snapshot.runs);
    const added = { schema, runs, release: () => snapshot.release() };
    const settings = { ...options, workers };
    if (!access.follows) return { scan: executeScan(added, query, settings), state };
    // When files of the first snapshot have been removed, the same records are read from a newer state.
    const takeRest = async (): Promise<Snapshot> => withinRuns(await this.newestOf(schema), runs);
    return { scan: executeScan(added, query, { ...settings, takeRest }), state };
  }

  scanSeen(query: Query, seen: SeenState, options: ScanOptions = {}): Promise<Scan> {
    const take = async (): Promise<Snapshot> => withinRuns(await this.newestOf(seen.schema), seen.runs);
    return this.scanOf(take, query, { ...options, workers: this.context.workers });
  }

  /**
   * A scan of the state that `take` returns. In a process that is not the writer, where a file is gone, it continues in the newest state, with the
   * records of the first one.
   */
  private async scanOf(take: () => Promise<Snapshot>, query: Query, settings: ScanSettings): Promise<Scan> {
    const { follows } = this.context.access;
    const snapshot = await take();
    if (!follows) return executeScan(snapshot, query, settings);
    const takeRest = async (): Promise<Snapshot> => withinRuns(await take(), snapshot.runs);
    return executeScan(snapshot, query, { ...settings, takeRest });
  }

  selectRows(
    query: Query,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterable<SelectedRows> {
    return selectRows(() => this.snapshot(), query, { ...options, workers: this.context.workers });
  }

  count(query: CountQuery, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Counts> {
    const { schema } = this;
    return countRecords(() => this.newestOf(schema), query, { ...options, workers: this.context.workers });
  }

  protected async newestOf(schema: Schema): Promise<Snapshot> {
    await this.context.access.refresh();
    return this.snapshotOf(schema);
  }

  /** The newest known snapshot. Throws `conflict` when it has other fields than the query's schema: queries refer to fields by index. */
  private snapshotOf(schema: Schema): Snapshot {
    const snapshot = this.context.state.snapshot();
    if (snapshot.schema === schema) return snapshot;
    snapshot.release();
    throw new LogstrataError('conflict', `the fields of agent ${this.name} have just changed: try again`);
  }
}

/** Restricts a newer state to the records of the first one: records that were added later are not part of the answer. */
function withinRuns({ schema, runs, release }: Snapshot, known: SnapshotRuns): Snapshot {
  return { schema, runs: sharedRuns(known, runs), release };
}
