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
  /** Number of all matching records. While `loading`, that of the previous question. */
  readonly count?: number | undefined;
  readonly extent?: Extent | undefined;
  readonly step?: TimeStep | undefined;
  readonly buckets: readonly TimeBucket[];
  readonly values?: ValueCounts | undefined;
  readonly failure?: Failure | undefined;
}

/** What to count. */
export interface HistogramAsk {
  readonly question: Question;
  /** Undefined where the agent has no time field: then only the total is requested. */
  readonly timeField: string | undefined;
  readonly extent: Extent;
  readonly split: string | undefined;
  readonly zone: string;
}

/** Maximum number of bars: they fit on a screen and are wide enough to click. */
const barsMax = 90;
/** Number of values that are counted separately. It is more than are drawn, so that rare values such as errors are included. */
const splitMax = 30;

/** Counts of the matching records over time. They are requested from the server, independently of the records in the table. */
export class Histogram {
  private readonly current = signal<HistogramState>({ kind: 'loading', buckets: [] });
  private asking = new AbortController();

  constructor(private readonly door: ServerDoor) {}

  get state(): ReadonlySignal<HistogramState> {
    return this.current;
  }

  /** Requests the counts. Aborts an earlier request. */
  async load({ question, timeField, extent, split, zone }: HistogramAsk): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: abortSignal } = this.asking;
    const step = stepFor(extent, barsMax);
    this.current.value = { ...this.current.value, kind: 'loading' };
    try {
      const time = timeField === undefined ? undefined : `${timeField}:${step.text}`;
      const ask = { time, field: split, top: splitMax, zone };
      const { count, time: times, values } = await askCounts(this.door, question, ask, abortSignal);
      if (abortSignal.aborted) return;
      this.current.value = { kind: 'ready', count, extent, step, buckets: times?.buckets ?? [], values };
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return;
      this.current.value = { kind: 'failed', buckets: [], failure: failureOfError(error) };
    }
  }

  /** Empties the histogram until the next load; for another agent. */
  clear(): void {
    this.asking.abort();
    this.current.value = { kind: 'loading', buckets: [] };
  }
}
