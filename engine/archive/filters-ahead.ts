import { setTimeout as delay } from 'node:timers/promises';
import { filtersAheadPauseMs, surveyedSegmentsMax } from '../terms/limits.js';
import type { AgentState } from '../store/reading/agent-state.js';
import { FarSegment } from '../store/reading/far-segment.js';
import { QueryThreads } from '../store/reading/query-threads.js';
import type { SegmentProbing } from '../store/reading/segment-probing.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import type { KeptKind } from '../store/sealed/kept-filters.js';
import { surveyTask, type KeepableFilters } from '../store/sealed/survey-task.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** An agent's segments, the newest first, with the filters that they have. Its snapshot keeps their files. */
interface Surveyed {
  readonly snapshot: Snapshot;
  readonly segments: readonly SurveyedSegment[];
}

interface SurveyedSegment {
  readonly probing: SegmentProbing;
  readonly filters: readonly KeepableFilters[];
}

/**
 * Brings filters of the agents that are opened into memory before a query asks for them, as many as have room there: those of whole
 * values first, and of newer segments first. One thread at a time does that, with a pause wherever queries have threads work.
 */
export class FiltersAhead {
  readonly #workers: WorkerPool;
  readonly #end = new AbortController();
  readonly #opened: AgentState[] = [];
  #running: Promise<void> | undefined;

  constructor(workers: WorkerPool) {
    this.#workers = workers;
  }

  /** Begins with an agent once those that were opened before it are done. One that is damaged answers nothing anyway. */
  add(state: AgentState): void {
    if (state.damage !== undefined) return;
    this.#opened.push(state);
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  /** Resolves when there is nothing more to read. */
  async done(): Promise<void> {
    await this.#running;
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    // What is opened in the same turn of the event loop is looked at together, and whoever opened it goes on first.
    await delay(0);
    const threads = QueryThreads.of(this.#workers, this.#end.signal);
    if (threads === null) return;
    while (this.#opened.length > 0 && !this.#end.signal.aborted) {
      const agents: Surveyed[] = [];
      try {
        for (const state of this.#opened.splice(0)) agents.push(await this.#survey(state, threads));
        for (const kind of ['values', 'grams'] as const)
          for (const { segments } of agents)
            for (const segment of segments) await this.#keep(segment, kind, threads);
      } catch {
        // The archive is closed, or a thread was lost. Queries read what they ask for.
      } finally {
        for (const { snapshot } of agents) snapshot.release();
      }
    }
    threads.end();
  }

  async #survey(state: AgentState, threads: QueryThreads): Promise<Surveyed> {
    const snapshot = state.snapshot();
    const newest = state.segments().sort((a, b) => (b.entry.timeMaxMs ?? 0) - (a.entry.timeMaxMs ?? 0));
    const probings = newest
      .flatMap(({ segment }) => (segment instanceof FarSegment ? [] : [segment.probing]))
      .filter(({ summary }) => summary !== null);
    const segments: SurveyedSegment[] = [];
    for (let from = 0; from < probings.length; from += surveyedSegmentsMax) {
      const some = probings.slice(from, from + surveyedSegmentsMax);
      const found = await threads.run(
        surveyTask,
        some.map(({ summary }) => summary!),
      );
      await this.#giveWay();
      segments.push(...some.map((probing, i) => ({ probing, filters: found[i]! })));
    }
    return { snapshot, segments };
  }

  async #keep({ probing, filters }: SurveyedSegment, kind: KeptKind, threads: QueryThreads): Promise<void> {
    for (const found of filters) {
      if (found.kind !== kind || this.#end.signal.aborted) continue;
      const keeping = probing.keep(found, threads);
      if (keeping === null) continue;
      await keeping;
      await this.#giveWay();
    }
  }

  async #giveWay(): Promise<void> {
    const { signal } = this.#end;
    if (this.#workers.busy > 0) await delay(filtersAheadPauseMs, undefined, { signal, ref: false });
  }
}
