import { ReaderState, type WriterAgents, type WriterClient } from './reader-state.js';
import type { FarSource } from './far-cluster.js';
import type { OrdinalRun } from '../store/manifest/manifest.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { type ReadableStore, ReadingStore } from '../archive/reading-store.js';
import {
  noFigures,
  type AgentFigures,
  type ArchiveFigures,
  type Trouble,
} from '../archive/archive-figures.js';

export interface ReaderOptions {
  /** The connection to the writer. The caller closes it. */
  readonly writer: WriterClient;
  /** The far tier; undefined when none is configured: then records in the far tier can't be answered. */
  readonly cluster: FarSource | undefined;
  /** How old a border may be when a query uses it, in milliseconds. */
  readonly lagMsMax: number;
  readonly workers: WorkerPool;
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number;
}

/**
 * The archive of a writer on another machine. It stores nothing: it asks the writer where each record is, reads the records in the
 * far tier from there, and asks the writer for the rest. Positions are the writer's, so answers are the same.
 */
export class ReaderArchive {
  readonly #options: Required<ReaderOptions>;
  readonly #opened = new Map<string, { readonly state: ReaderState; readonly store: ReadableStore }>();

  constructor(options: ReaderOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  /** The writer's address. */
  get location(): string {
    return this.#options.writer.address;
  }

  /** The agents of the writer. Throws `unavailable`. */
  agents(): Promise<WriterAgents> {
    return this.#options.writer.agents();
  }

  /** The store of one agent. This asks the writer nothing: queries on the store throw when the writer can't be reached. */
  agent(name: string): ReadableStore {
    const known = this.#opened.get(name);
    if (known !== undefined) return known.store;
    const { writer, cluster, lagMsMax, workers, now } = this.#options;
    const state = new ReaderState(name, writer, cluster, lagMsMax, now);
    const access = { follows: true, refresh: () => state.refresh() };
    const store = new ReadingStore({ state, access, workers, remote: state.remote });
    this.#opened.set(name, { state, store });
    return store;
  }

  /** Forgets an agent that the writer no longer answers for. */
  forget(name: string): void {
    this.#opened.delete(name);
  }

  /** How many records an agent has, and how many of them are in the far tier. Throws as a query does. */
  async counts(name: string): Promise<{ readonly records: number; readonly farRecords: number }> {
    this.agent(name);
    const { state } = this.#opened.get(name)!;
    await state.refresh();
    const { records, farRecords } = figuresOf(state);
    return { records, farRecords };
  }

  /** Figures of the agents that are open here. Requests a new border for each agent whose border is too old. */
  async figures(): Promise<ArchiveFigures> {
    await this.troubles();
    const agents = [...this.#opened.values()].map(({ state }) => figuresOf(state));
    const pool = { bytes: 0, bytesMax: 0, pinnedBytes: 0, evictions: 0 };
    return { agents, pool, compactionThreadsBusy: 0, disk: null };
  }

  /** Why agents can't be answered. A reason that all open agents share is given once. */
  async troubles(): Promise<readonly Trouble[]> {
    const reasons = new Map<string, string[]>();
    const all = [...this.#opened].map(async ([agent, { state }]) => {
      try {
        await state.refresh();
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        reasons.set(reason, [...(reasons.get(reason) ?? []), agent]);
      }
    });
    await Promise.all(all);
    return [...reasons].flatMap(([reason, agents]): Trouble[] =>
      agents.length === this.#opened.size ? [{ reason }] : agents.map((agent) => ({ agent, reason })),
    );
  }
}

function figuresOf({ agent, border, ageMs: lagMs }: ReaderState): AgentFigures {
  const farRecords = border?.far.units.reduce((sum, { runs }) => sum + rowsOf(runs), 0) ?? 0;
  const records = farRecords + rowsOf(border?.near ?? []);
  return { ...noFigures, agent, records, farRecords, lagMs };
}

function rowsOf(runs: readonly OrdinalRun[]): number {
  return runs.reduce((sum, { rows }) => sum + rows, 0);
}
