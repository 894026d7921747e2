import { signal, type ReadonlySignal } from '@preact/signals';
import type { Extent, NumberLine, Question, Span } from './view.js';
import { askCounts, type TimeBucket, type ValueCounts, type ServerClient } from './requests.js';
import { failureOfError, isAborted, type Failure } from './failure.js';
import type { AskForPage } from './record-window.js';
import { firstCursor, hourOfCursor, type LogRecord } from './record.js';

/** A step of the histogram. `text` is its form for the count route. */
interface TimeStep {
  readonly text: string;
  readonly lengthMs: number;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const steps: readonly TimeStep[] = [
  ...[1, 2, 5, 10, 15, 30].map((n) => ({ text: `${n}s`, lengthMs: n * second })),
  ...[1, 2, 5, 10, 15, 30].map((n) => ({ text: `${n}m`, lengthMs: n * minute })),
  ...[1, 2, 3, 6, 12].map((n) => ({ text: `${n}h`, lengthMs: n * hour })),
  ...[1, 2, 7, 14, 28, 56, 112, 224, 448, 896].map((n) => ({ text: `${n}d`, lengthMs: n * day })),
];

/** The shortest step that divides an extent into at most `stepsMax` steps. */
function stepFor({ sinceMs, untilMs }: Extent, stepsMax: number): TimeStep {
  const shortest = (untilMs - sinceMs) / stepsMax;
  return steps.find(({ lengthMs }) => lengthMs >= shortest) ?? steps.at(-1)!;
}

/** What the histogram shows. */
export interface HistogramState {
  readonly kind: 'loading' | 'ready' | 'failed';
  /** Number of all matching records. While `loading`, that of the previous question. */
  readonly count?: number | undefined;
  readonly extent?: Extent | undefined;
  readonly step?: TimeStep | undefined;
  readonly buckets: readonly TimeBucket[];
  readonly values?: ValueCounts | undefined;
  readonly line?: NumberLine | undefined;
  readonly failure?: Failure | undefined;
}

/** What to count. */
export interface HistogramAsk {
  readonly question: Question;
  /** Undefined where the agent has no time field: then only the total is requested. */
  readonly timeField: string | undefined;
  readonly extent: Extent;
  readonly split: string | undefined;
  readonly line: NumberLine | undefined;
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

  constructor(private readonly server: ServerClient) {}

  get state(): ReadonlySignal<HistogramState> {
    return this.current;
  }

  /** Requests the counts. Aborts an earlier request. */
  async load({ question, timeField, extent, split, line, zone }: HistogramAsk): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: abortSignal } = this.asking;
    const step = stepFor(extent, barsMax);
    this.current.value = { ...this.current.value, kind: 'loading' };
    try {
      const time = timeField === undefined ? undefined : `${timeField}:${step.text}`;
      const ask = { time, field: split, top: splitMax, line: time === undefined ? undefined : line, zone };
      const { count, time: times, values } = await askCounts(this.server, question, ask, abortSignal);
      if (abortSignal.aborted) return;
      const buckets = times?.buckets ?? [];
      this.current.value = { kind: 'ready', count, extent, step, buckets, values, line };
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

const hourMs = 3_600_000;

/** The time of a record, in the first of these fields that has one; the hour of its cursor where it has no time. */
export function timeOfRecord({ values, cursor }: LogRecord, clocks: readonly string[]): number {
  const times = clocks.map((name) => values.get(name)).filter((value) => typeof value === 'number');
  return times[0] ?? hourOfCursor(cursor);
}

/** What the page learns about an agent's records whatever the question is. */
export interface KnownRecords {
  /**
   * The time range of all records, which the histogram shows for an unbounded range. Undefined where there are no records. Records are
   * ordered by whole hours only, so some records of the first and last hour may be outside.
   */
  readonly extent: Extent | undefined;
  /** The newest records. */
  readonly sample: readonly LogRecord[];
}

/** Number of records that are sampled to learn about the values of fields. */
const sampleRecords = 100;

/** Requests the first and the newest records of an agent, without filters. */
export async function askKnownRecords(
  ask: AskForPage,
  clocks: readonly string[],
  signal: AbortSignal,
): Promise<KnownRecords> {
  const [first, last] = await Promise.all([
    ask({ limit: 1, after: firstCursor }, signal),
    ask({ limit: sampleRecords }, signal),
  ]);
  const [oldest] = first.records;
  const newest = last.records.at(-1);
  if (oldest === undefined || newest === undefined) return { extent: undefined, sample: [] };
  const sinceMs = Math.min(timeOfRecord(oldest, clocks), hourOfCursor(oldest.cursor) + hourMs);
  const untilMs = Math.max(timeOfRecord(newest, clocks), hourOfCursor(newest.cursor));
  const extent = { sinceMs: Math.min(sinceMs, untilMs), untilMs: Math.max(sinceMs, untilMs) + 1 };
  return { extent, sample: last.records };
}

/** The time range that the histogram shows for a span; unbounded ends are replaced by those of the records. */
export function drawnExtent({ sinceMs, untilMs }: Span, records: Extent | undefined, nowMs: number): Extent {
  const from = sinceMs ?? Math.min(records?.sinceMs ?? nowMs - hourMs, untilMs ?? Infinity);
  const newest = records === undefined ? nowMs : Math.max(records.untilMs, from + 1);
  // A range that is bounded only at its start ends now, not at the newest record, so that a time without records is visible. Records with a
  // later time extend it to at most twice its length: one record far in the future would leave no room for the others.
  const latest = Math.max(nowMs, Math.min(newest, nowMs + Math.max(0, nowMs - from)));
  const until = untilMs ?? (sinceMs === undefined ? newest : latest);
  return { sinceMs: from, untilMs: Math.max(until, from + 1) };
}

/** The state of a field's value counts. */
export interface FacetState {
  readonly kind: 'loading' | 'ready' | 'failed';
  /** While `loading`, the counts of the previous question. */
  readonly counts?: ValueCounts | undefined;
  readonly failure?: Failure | undefined;
}

/** Number of values that are shown per field. */
const topMax = 10;
/** Number of concurrent requests: a browser opens six connections to a server, and records are more important. */
const atOnceMax = 2;

/** The most frequent values of the fields whose facet is open. */
export class Facets {
  private readonly current = signal<ReadonlyMap<string, FacetState>>(new Map());
  private asking = new AbortController();

  constructor(private readonly server: ServerClient) {}

  /** By the name of the field. */
  get state(): ReadonlySignal<ReadonlyMap<string, FacetState>> {
    return this.current;
  }

  /** Requests the value counts of these fields, each by its own question. */
  async load(fields: readonly { readonly name: string; readonly question: Question }[]): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: abortSignal } = this.asking;
    const old = this.current.peek();
    this.current.value = new Map(fields.map(({ name }) => [name, { ...old.get(name), kind: 'loading' }]));
    const waiting = [...fields];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { name, question } = next;
        const state = await this.ask(name, question, abortSignal);
        if (state === undefined) return;
        this.current.value = new Map(this.current.peek()).set(name, state);
      }
    };
    await Promise.all(Array.from({ length: atOnceMax }, work));
  }

  /** Drops all counts; for another agent. */
  clear(): void {
    this.asking.abort();
    this.current.value = new Map();
  }

  /** Requests the counts of a field; undefined where the request was aborted. */
  private async ask(
    field: string,
    question: Question,
    abortSignal: AbortSignal,
  ): Promise<FacetState | undefined> {
    try {
      const { values } = await askCounts(this.server, question, { field, top: topMax }, abortSignal);
      return abortSignal.aborted ? undefined : { kind: 'ready', counts: values };
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return undefined;
      return { kind: 'failed', failure: failureOfError(error) };
    }
  }
}
