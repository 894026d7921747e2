import { signal, type ReadonlySignal } from '@preact/signals';
import { askCounts, type TimeBucket, type ValueCounts } from '../api/counts.js';
import { failureOfError, isAborted, type Failure } from '../api/failure.js';
import type { ServerDoor } from '../api/server-door.js';
import type { Question } from '../query/question.js';
import type { Extent } from '../query/time-range.js';
import { stepFor, type TimeStep } from './time-steps.js';

/** What the histogram shows. */
export interface HistogramState {
  readonly kind: 'loading' | 'ready' | 'failed';
  /** All that match, in the table or not; of the question before while loading. */
  readonly count?: number | undefined;
  readonly extent?: Extent | undefined;
  readonly step?: TimeStep | undefined;
  readonly buckets: readonly TimeBucket[];
  readonly values?: ValueCounts | undefined;
  readonly failure?: Failure | undefined;
}

/** What is counted, and how. */
export interface HistogramAsk {
  readonly question: Question;
  /** Undefined where the agent has no time: only the sum is asked for. */
  readonly timeField: string | undefined;
  readonly extent: Extent;
  readonly split: string | undefined;
  readonly zone: string;
}

/** Bars that fit beside each other on a screen and can still be aimed at. */
const barsMax = 90;
/** Values that are counted apart: more than are drawn, so that errors, which are rare, are among them. */
const splitMax = 30;

/** Counts over time, by a question of their own: what the table holds has no part in them. */
export class Histogram {
  private readonly current = signal<HistogramState>({ kind: 'loading', buckets: [] });
  private asking = new AbortController();

  constructor(private readonly door: ServerDoor) {}

  get state(): ReadonlySignal<HistogramState> {
    return this.current;
  }

  async load({ question, timeField, extent, split, zone }: HistogramAsk): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: aborts } = this.asking;
    const step = stepFor(extent, barsMax);
    this.current.value = { ...this.current.value, kind: 'loading' };
    try {
      const time = timeField === undefined ? undefined : `${timeField}:${step.text}`;
      const ask = { time, field: split, top: splitMax, zone };
      const { count, time: times, values } = await askCounts(this.door, question, ask, aborts);
      if (aborts.aborted) return;
      this.current.value = { kind: 'ready', count, extent, step, buckets: times?.buckets ?? [], values };
    } catch (error) {
      if (aborts.aborted || isAborted(error)) return;
      this.current.value = { kind: 'failed', buckets: [], failure: failureOfError(error) };
    }
  }

  /** Shows nothing until it is loaded anew: for another agent. */
  clear(): void {
    this.asking.abort();
    this.current.value = { kind: 'loading', buckets: [] };
  }
}
