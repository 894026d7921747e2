import type { AgentState } from '../store/reading/agent-state.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import { FiltersAhead } from './filters-ahead.js';
import { makeReady } from './ready-task.js';
import { rehearse } from './rehearsal.js';

/**
 * Prepares a process that goes on answering for the first queries: its threads are begun, the code that queries run is compiled, and filters are
 * read into memory. Queries are answered meanwhile.
 */
export class Anticipation {
  readonly #workers: WorkerPool;
  readonly #filters: FiltersAhead;
  readonly #end = new AbortController();
  #rehearsal: Promise<void> | undefined;

  constructor(workers: WorkerPool) {
    this.#workers = workers;
    this.#filters = new FiltersAhead(workers);
    void makeReady(workers);
  }

  /** Prepares for queries on an agent that has been opened. The rehearsal takes place once, on the first agent that it is possible on. */
  add(state: AgentState): void {
    if (state.damage !== undefined) return;
    this.#rehearsal ??= rehearse(state, this.#workers, this.#end.signal);
    void this.#prepare(state);
  }

  async #prepare(state: AgentState): Promise<void> {
    await this.#rehearsal;
    if (!this.#end.signal.aborted) this.#filters.add(state);
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#rehearsal;
    await this.#filters.close();
  }
}
