import { newRuns, haveRecord, sharedRuns } from '../scan/added-runs.js';
import type { SnapshotRuns, Snapshot } from '../store/reading/snapshot.js';
import { comparePositions, type Position } from '../core/cursor.js';
import type { Schema } from '../core/schema.js';
import { pollMs } from '../core/limits.js';
import type { StateChanges } from '../store/reading/state-changes.js';
import { countRecords } from '../scan/count.js';
import { executeScan, type ScanSettings } from '../scan/answer.js';
import type { RemoteSource } from '../scan/tiered-finder.js';
import type { CountQuery, Counts } from '../scan/count-query.js';
import type { Query } from '../scan/query.js';
import type { Scan, ScanOptions } from '../scan/scan.js';
import { selectRows, type SelectedRows } from '../scan/selected-rows.js';
import { LogstrataError } from '../core/errors.js';
import type { SeveralCursors } from '../several/several-cursor.js';
import { SeveralStore } from '../several/several-store.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** The records of a state that somebody has seen, to tell from later ones what has become visible since. It pins no files. */
export class SeenState {
  constructor(
    readonly schema: Schema,
    readonly runs: SnapshotRuns,
  ) {}

  /** The position of the last record; that before every record where there is none. */
  get last(): Position {
    const run = this.runs.at(-1);
    if (run === undefined) return { partition: 0, ordinal: 0 };
    return { partition: run.partition, ordinal: run.firstOrdinal + run.rows - 1 };
  }

  /** Whether a record stood at the position. */
  has({ partition, ordinal }: Position): boolean {
    return haveRecord(this.runs, partition, ordinal);
  }

  /** Whether all records that the later state `now` has besides those of this state are after the last one of this state. */
  isContinuedBy(now: SeenState): boolean {
    if (now.runs === this.runs) return true;
    const added = newRuns(this.runs, now.runs)[0];
    if (added === undefined) return true;
    const { partition, firstOrdinal: ordinal } = added;
    return comparePositions({ partition, ordinal }, this.last) > 0;
  }
}

/** Tells of changes of an agent's state. Where another process may make them, it looks for them while anybody listens. */
class StateWatch {
  #listeners = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly changes: StateChanges /** Asked anew each time: this process may become the writer. */,
    private readonly access: () => ReadingAccess,
  ) {}

  listen(call: () => void): () => void {
    const end = this.changes.listen(call);
    this.#listeners++;
    this.#timer ??= setInterval(() => this.#look(), pollMs).unref();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      end();
      if (--this.#listeners > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const access = this.access();
    // What fails is told by the next scan.
    if (access.follows) access.refresh().catch(() => undefined);
  }
}

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
  /** Reads rows on other machines; undefined where none is configured. */
  readonly remote?: RemoteSource | undefined;
}

/** Answers queries on one agent's records: scans, counts, and scans of the records that were added since an earlier state. */
export class ReadingStore<Context extends ReadingContext = ReadingContext> {
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

  /** A snapshot of the newest committed state. In a process that does not write, it looks for a newer state first. */
  async snapshot(): Promise<Snapshot> {
    await this.context.access.refresh();
    return this.context.state.snapshot();
  }

  /** Starts a query on the newest state. Its errors come from `lines`. */
  scan(query: Query, options: ScanOptions = {}): Promise<Scan> {
    const { workers, remote } = this.context;
    // The options are copied one by one: a spread gives the object another hidden class, and code that then reads it runs
    // slower; this costs more time than a short answer takes.
    const { signal, pieceBytes, bytesMax, lends, joins, onTurn } = options;
    const settings = { signal, pieceBytes, bytesMax, lends, joins, onTurn, workers, remote };
    const { schema } = this;
    return this.scanOf(() => this.newestOf(schema), query, settings);
  }

  /**
   * Calls `call` soon after records become visible or the fields change. Returns a function that ends this. When another process
   * writes, its state is polled while there are listeners.
   */
  onChange(call: () => void): () => void {
    return this.watch.listen(call);
  }

  /** The newest state, to be compared with later ones. */
  async seen(): Promise<SeenState> {
    await this.context.access.refresh();
    const { schema, runs, release } = this.context.state.snapshot();
    release();
    return new SeenState(schema, runs);
  }

  /**
   * Scans the records that the newest state has and the earlier state `seen` does not have; all records when `seen` is null. Also
   * returns the state that it reads. Throws `conflict` when the fields have changed since `seen`.
   */
  async scanAdded(query: Query, seen: SeenState | null, options: ScanOptions = {}): Promise<ScanOfState> {
    const { access } = this.context;
    const schema = seen?.schema ?? this.schema;
    await access.refresh();
    const snapshot = this.snapshotOf(schema);
    const state = new SeenState(schema, snapshot.runs);
    const runs = seen === null ? snapshot.runs : newRuns(seen.runs, snapshot.runs);
    const added = { schema, runs, release: () => snapshot.release() };
    const settings = this.settingsOf(options);
    if (!access.follows) return { scan: executeScan(added, query, settings), state };
    // When files of the first snapshot have been removed, the same records are read from a newer state.
    const takeRest = async (): Promise<Snapshot> => withinRuns(await this.newestOf(schema), runs);
    return { scan: executeScan(added, query, { ...settings, takeRest }), state };
  }

  /**
   * Scans the records of an earlier state, as far as they are still stored. Throws `conflict` when the fields have changed since `seen`.
   */
  scanSeen(query: Query, seen: SeenState, options: ScanOptions = {}): Promise<Scan> {
    const take = async (): Promise<Snapshot> => withinRuns(await this.newestOf(seen.schema), seen.runs);
    return this.scanOf(take, query, this.settingsOf(options));
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

  /**
   * Answers the same queries as `scan`, as columns instead of lines, in pieces of at most one row group.
   *
   * @param schema the fields that the query refers to; those of the newest state if absent
   */
  selectRows(
    query: Query,
    options: { readonly signal?: AbortSignal | undefined } = {},
    schema?: Schema,
  ): AsyncIterable<SelectedRows> {
    const take = () => (schema === undefined ? this.snapshot() : this.newestOf(schema));
    return selectRows(take, query, this.settingsOf(options));
  }

  /** The records of this agent and of others, merged in one order. */
  joined(others: readonly ReadableStore[]): SeveralStore {
    return new SeveralStore([this, ...others]);
  }

  /** Counts the matching records exactly, by time bucket, by the values of a field, or by both. Throws as `countRecords` does. */
  count(query: CountQuery, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Counts> {
    const { schema } = this;
    const { remote, ...settings } = this.settingsOf(options);
    return countRecords(async () => [{ snapshot: await this.newestOf(schema), query, remote }], settings);
  }

  private settingsOf<Options extends object>(options: Options): Options & ScanSettings {
    const { workers, remote } = this.context;
    return { ...options, workers, remote };
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

/** The queries on one agent's records: those that also a reader on another machine can answer. */
export type ReadableStore = Pick<
  ReadingStore,
  | 'name'
  | 'schema'
  | 'context'
  | 'joined'
  | 'snapshot'
  | 'scan'
  | 'onChange'
  | 'seen'
  | 'scanAdded'
  | 'scanSeen'
  | 'selectRows'
  | 'count'
>;

/** The records of a state that somebody has seen. */
export interface Seen {
  readonly schema: Schema;
  /** The same object for the same state. */
  readonly runs: SnapshotRuns;
  readonly last: Position;
  has(position: Position): boolean;
  isContinuedBy(now: Seen): boolean;
}

/** Records to page through and to follow: those of one agent or of several. */
export interface RecordStore {
  readonly schema: Schema;
  /** How positions are written; undefined where they are those of one agent. */
  readonly cursors?: SeveralCursors;
  scan(query: Query, options?: ScanOptions): Promise<Scan>;
  onChange(call: () => void): () => void;
  seen(): Promise<Seen>;
  scanAdded(query: Query, seen: Seen | null, options?: ScanOptions): Promise<{ scan: Scan; state: Seen }>;
  scanSeen(query: Query, seen: Seen, options?: ScanOptions): Promise<Scan>;
}

/** A scan with the state that it reads. */
export interface ScanOfState {
  readonly scan: Scan;
  readonly state: SeenState;
}
