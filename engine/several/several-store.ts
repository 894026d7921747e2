import type { JointPosition, Position } from '../core/cursor.js';
import { comparePositions } from '../core/cursor.js';
import { LogstrataError } from '../core/errors.js';
import type { Field, Schema } from '../core/schema.js';
import { newRuns, haveRecord, sharedRuns } from '../scan/added-runs.js';
import { executeScan, type AnswerSettings } from '../scan/answer.js';
import { countRecords, type CountPart } from '../scan/count.js';
import type { CountQuery, Counts } from '../scan/count-query.js';
import type { PieceIterator, Scan, ScanOptions } from '../scan/scan.js';
import type { RemoteSource } from '../scan/tiered-finder.js';
import { endOfSnapshot, type Snapshot, type SnapshotRuns } from '../store/reading/snapshot.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { before, start } from './known-gaps.js';
import {
  beginSeveral,
  rangeOf,
  type AgentOfSeveral,
  type SeveralQuery,
  type SeveralSnapshot,
} from './several-answer.js';
import { SeveralCursors } from './several-cursor.js';

/** The store of one agent, as far as several are read together. */
export interface StoreOfAgent {
  readonly name: string;
  readonly schema: Schema;
  readonly context: {
    readonly state: { snapshot(): Snapshot };
    readonly access: { refresh(): Promise<void>; readonly follows: boolean };
    readonly workers: WorkerPool;
    readonly remote?: RemoteSource | undefined;
  };
  onChange(call: () => void): () => void;
}

/** The records of a state of several agents that somebody has seen. */
export class SeveralSeen {
  constructor(
    readonly schema: Schema,
    /** The same object for the same states. */
    readonly runs: SnapshotRuns,
    readonly all: readonly SnapshotRuns[],
  ) {}

  /** The position of the last record of each agent; that before every record where there is none. */
  get last(): JointPosition {
    const of = this.all.map((runs) => {
      const last = before(endOfSnapshot({ runs }));
      return comparePositions(last, start) < 0 ? start : last;
    });
    return { ...of[0]!, agent: 0, of };
  }

  /** Whether a record stood at the position. */
  has(position: Position): boolean {
    const { agent, of } = position as JointPosition;
    const { partition, ordinal } = of[agent]!;
    return haveRecord(this.all[agent]!, partition, ordinal);
  }

  /** Whether all records that the later state `now` has besides those of this state are after the last one of their agent in this state. */
  isContinuedBy(now: SeveralSeen): boolean {
    const { of } = this.last;
    return this.all.every((runs, k) => {
      const added = newRuns(runs, now.all[k]!)[0];
      if (added === undefined) return true;
      const { partition, firstOrdinal: ordinal } = added;
      return comparePositions({ partition, ordinal }, of[k]!) > 0;
    });
  }
}

/** A scan with the state that it reads. */
interface ScanOfSeveral {
  readonly scan: Scan;
  readonly state: SeveralSeen;
}

/** Answers queries on the records of several agents, merged in one order. Each page is of one state of all. */
export class SeveralStore {
  readonly cursors: SeveralCursors;
  readonly #heads: readonly string[];
  #schema: Schema | null = null;
  #schemas: readonly Schema[] = [];
  /** The runs of the last state, and the object that stands for them. */
  #state: { readonly all: readonly SnapshotRuns[]; readonly runs: SnapshotRuns } | null = null;

  /** @param stores of different agents, in the order in which they are named */
  constructor(readonly stores: readonly StoreOfAgent[]) {
    const names = stores.map(({ name }) => name);
    this.cursors = new SeveralCursors(names);
    this.#heads = names.map((_, k) => this.cursors.headOf(k));
  }

  get name(): string {
    return this.stores.map(({ name }) => name).join();
  }

  /** The fields of all, in the order in which the agents bring them. A field has the type that the first of these agents gives it. */
  get schema(): Schema {
    const schemas = this.stores.map(({ schema }) => schema);
    if (this.#schema === null || schemas.some((schema, k) => schema !== this.#schemas[k])) {
      const fields = new Map<string, Field>();
      for (const field of schemas.flatMap((schema) => schema.fields))
        if (!fields.has(field.name)) fields.set(field.name, field);
      this.#schema = { fields: [...fields.values()] };
      this.#schemas = schemas;
    }
    return this.#schema;
  }

  /** Starts a query on the newest state. Its errors come from `lines`. */
  async scan(query: SeveralQuery, options: ScanOptions = {}): Promise<Scan> {
    const { schema } = this;
    const snapshot = await this.#newest(schema);
    return this.#execute(snapshot, query, options, () => this.#newest(schema));
  }

  /**
   * Counts the matching records of all agents together.
   *
   * @param queries for each agent, see `CountPart`; their bounds are ignored
   */
  count(
    queries: readonly CountQuery[],
    bounds: Pick<SeveralQuery, 'after' | 'before'>,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Counts> {
    const { schema } = this;
    const { workers } = this.stores[0]!.context;
    const take = async (): Promise<CountPart[]> => {
      const { agents, release } = await this.#newest(schema);
      return agents.map(({ schema: own, runs, remote }, k) => ({
        snapshot: { schema: own, runs, release: k === 0 ? release : () => {} },
        query: { ...queries[k]!, ...rangeOf(bounds, k) },
        remote,
      }));
    };
    return countRecords(take, { ...options, workers });
  }

  /** Calls `call` soon after records of an agent become visible or fields change. Returns a function that ends this. */
  onChange(call: () => void): () => void {
    const ends = this.stores.map((store) => store.onChange(call));
    return () => ends.forEach((end) => end());
  }

  /** The newest state, to be compared with later ones. */
  async seen(): Promise<SeveralSeen> {
    const snapshot = await this.#newest(this.schema);
    snapshot.release();
    return seenOf(snapshot);
  }

  /**
   * Scans the records that the newest state has and the earlier state `seen` does not have; all records when `seen` is null. Also
   * returns the state that it reads. First come the records that are not after the last one of their agent in `seen`. The cursors of the others
   * pass all of `seen`. Throws `conflict` when the fields have changed since `seen`.
   */
  async scanAdded(
    query: SeveralQuery,
    seen: SeveralSeen | null,
    options: ScanOptions = {},
  ): Promise<ScanOfSeveral> {
    const schema = seen?.schema ?? this.schema;
    const snapshot = await this.#newest(schema);
    const state = seenOf(snapshot);
    const rest = (): Promise<SeveralSnapshot> => this.#newest(schema);
    if (seen === null) return { scan: this.#execute(snapshot, query, options, rest), state };
    const floor = seen.last.of;
    const parts = snapshot.agents.map(({ runs }, k) => {
      const added = newRuns(seen.all[k]!, runs);
      // A run of added records is on one side of the last one that was seen.
      const isLate = ({ partition, firstOrdinal: ordinal }: (typeof added)[number]): boolean =>
        comparePositions({ partition, ordinal }, floor[k]!) <= 0;
      return { late: added.filter(isLate), rest: added.filter((run) => !isLate(run)) };
    });
    const of = (part: 'late' | 'rest'): SeveralSnapshot => ({
      ...snapshot,
      runs: [],
      agents: snapshot.agents.map((agent, k) => ({ ...agent, runs: parts[k]![part] })),
      floor: part === 'late' ? null : floor,
    });
    if (parts.every(({ late }) => late.length === 0))
      return { scan: this.#execute(of('rest'), query, options, rest), state };
    let scans = 2;
    const release = (): void => (--scans === 0 ? snapshot.release() : undefined);
    const late = this.#execute({ ...of('late'), release }, query, options, rest);
    const newer = this.#execute({ ...of('rest'), release }, query, options, rest);
    return { scan: { stats: newer.stats, lines: new JoinedLines(late.lines, newer.lines) }, state };
  }

  /** Scans the records of an earlier state, as far as they are still stored. Throws `conflict` when the fields have changed since `seen`. */
  async scanSeen(query: SeveralQuery, seen: SeveralSeen, options: ScanOptions = {}): Promise<Scan> {
    const take = async (): Promise<SeveralSnapshot> =>
      within(await this.#newest(seen.schema), seen.all, seen.all);
    return this.#execute(await take(), query, options, take);
  }

  /** @param take the newest state, for where a file of `snapshot` is gone because another process writes */
  #execute(
    snapshot: SeveralSnapshot,
    query: SeveralQuery,
    options: ScanOptions,
    take: () => Promise<SeveralSnapshot>,
  ): Scan {
    const runs = snapshot.agents.map((agent) => agent.runs);
    const all = snapshot.agents.map((agent) => agent.all);
    const takeRest = async (): Promise<SeveralSnapshot> => ({
      ...within(await take(), runs, all),
      floor: snapshot.floor,
    });
    const { workers } = this.stores[0]!.context;
    const follows = this.stores.some(({ context }) => context.access.follows);
    const settings: AnswerSettings & ScanOptions = {
      ...options,
      workers,
      begins: beginSeveral,
      columns: ['_cursor', '_agent'],
      takeRest: follows ? takeRest : undefined,
    };
    return executeScan(snapshot, query, settings);
  }

  /** A snapshot of each agent, taken at once. Throws `conflict` when there are other fields than those of a query's schema. */
  async #newest(schema: Schema): Promise<SeveralSnapshot> {
    await Promise.all(this.stores.map(({ context }) => context.access.refresh()));
    if (this.schema !== schema)
      throw new LogstrataError('conflict', `the fields of agents ${this.name} have just changed: try again`);
    const snapshots: Snapshot[] = [];
    const release = (): void => snapshots.forEach((snapshot) => snapshot.release());
    try {
      for (const { context } of this.stores) snapshots.push(context.state.snapshot());
    } catch (error) {
      release();
      throw error;
    }
    const agents = this.stores.map(({ name, context }, k): AgentOfSeveral => {
      const { schema: own, runs } = snapshots[k]!;
      return { name, schema: own, runs, all: runs, key: context, remote: context.remote };
    });
    if (this.#state?.all.every((runs, k) => runs === agents[k]!.all) !== true)
      this.#state = { all: agents.map(({ all }) => all), runs: [] };
    return { schema, runs: this.#state.runs, agents, heads: this.#heads, floor: null, release };
  }
}

function seenOf({ schema, runs, agents }: SeveralSnapshot): SeveralSeen {
  return new SeveralSeen(
    schema,
    runs,
    agents.map(({ all }) => all),
  );
}

/** Restricts a newer state to the records of an earlier one. */
function within(
  snapshot: SeveralSnapshot,
  runs: readonly SnapshotRuns[],
  all: readonly SnapshotRuns[],
): SeveralSnapshot {
  const agents = snapshot.agents.map((agent, k) => {
    const known = sharedRuns(all[k]!, agent.all);
    return { ...agent, all: known, runs: runs[k] === all[k] ? known : sharedRuns(runs[k]!, agent.all) };
  });
  return { ...snapshot, runs: [], agents };
}

/** The pieces of one scan and then those of another. */
class JoinedLines implements PieceIterator {
  readonly isAtEnd = false;
  readonly #scans: readonly PieceIterator[];

  constructor(...lines: readonly Scan['lines'][]) {
    this.#scans = lines.map((each) => each[Symbol.asyncIterator]() as PieceIterator);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    for (const scan of this.#scans) {
      const result = await scan.next();
      if (result.done !== true) return result;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    for (const scan of this.#scans) await scan.return();
    return { done: true, value: undefined };
  }
}
