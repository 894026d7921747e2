import type { HistogramState } from '../state/histogram.js';
import { severityOf, severityRank, type Severity } from '../state/severity.js';

/** One colour of the bars. */
export interface BarLayer {
  readonly name: string;
  /** Undefined for all values that have no layer of their own. */
  readonly value?: string | undefined;
  readonly total: number;
  readonly severity: Severity;
  /** Among values that say nothing of how bad a record is, which colour. */
  readonly hue: number;
  /** Among values that are equally bad, which shade of their colour; 0 is the full one. */
  readonly shade: number;
  /** Heights of the bars up to and with this layer. */
  readonly tops: readonly number[];
  readonly counts: readonly number[];
}

/** Bars of a histogram: equal steps, none left out, each cut into layers. */
export interface StackedBars {
  /** When each step begins, in seconds. */
  readonly seconds: readonly number[];
  /** From the bottom up. */
  readonly layers: readonly BarLayer[];
  readonly totals: readonly number[];
}

/** More steps than this are never asked for; an answer that has more is not drawn whole. */
const stepsMax = 1000;

interface Step {
  readonly from: number;
  readonly count: number;
  readonly values: readonly number[];
}

/** More colours than this are not told apart; other values are drawn as one. */
const layersMax = 8;

/** The values that have a layer of their own: the most frequent ones, and before these all that tell of errors, which are rare. */
function ownLayers<T extends { readonly severity: Severity }>(values: readonly T[]): readonly T[] {
  const errors = values.filter(({ severity }) => severity === 'error');
  const others = values.filter(({ severity }) => severity !== 'error');
  return [...errors, ...others].slice(0, layersMax);
}

/** All steps between the ends of the extent: those that the answer leaves out have no record. */
function allSteps({ buckets, extent, step }: HistogramState): Step[] {
  if (extent === undefined || step === undefined) return [];
  const inside = buckets.filter(({ from, until }) => until > extent.sinceMs && from < extent.untilMs);
  const empty = (from: number): Step => ({ from, count: 0, values: [] });
  const begin = inside[0]?.from ?? Math.floor(extent.sinceMs / step.lengthMs) * step.lengthMs;
  const before = Math.max(0, Math.ceil((begin - extent.sinceMs) / step.lengthMs));
  const steps: Step[] = [];
  for (let i = before; i > 0; i -= 1) steps.push(empty(begin - i * step.lengthMs));
  let next = begin;
  for (const { from, until, count, values = [] } of inside) {
    // A day of 25 hours leaves an hour over: less than a step is no gap.
    for (; from - next >= step.lengthMs * 0.9 && steps.length < stepsMax; next += step.lengthMs)
      steps.push(empty(next));
    steps.push({ from, count, values });
    next = until;
  }
  for (; next < extent.untilMs && steps.length < stepsMax; next += step.lengthMs) steps.push(empty(next));
  return steps;
}

/** Stacks the counts of a histogram, the worst at the bottom. */
export function stackBars(state: HistogramState): StackedBars {
  const steps = allSteps(state);
  const totals = steps.map(({ count }) => count);
  const top = state.values?.top ?? [];
  const plain = top.map(({ value, count }, i) => ({
    name: String(value),
    value: String(value),
    total: count,
    severity: severityOf(typeof value === 'boolean' ? String(value) : value),
    hue: i,
    shade: 0,
    counts: steps.map(({ values }) => values[i] ?? 0),
  }));
  const named = ownLayers(plain).toSorted(
    (a, b) => severityRank(a.severity) - severityRank(b.severity) || a.name.localeCompare(b.name),
  );
  const restCounts = totals.map((count, i) => named.reduce((rest, { counts }) => rest - counts[i]!, count));
  const restTotal = restCounts.reduce((sum, count) => sum + count, 0);
  const rest = {
    name: top.length === 0 ? 'records' : 'other',
    value: undefined,
    total: restTotal,
    severity: 'other' as const,
    hue: -1,
    shade: 0,
    counts: restCounts,
  };
  const kin = new Map<Severity, number>();
  const shaded = named.map((layer) => {
    const shade = layer.severity === 'other' ? 0 : (kin.get(layer.severity) ?? 0);
    kin.set(layer.severity, shade + 1);
    return { ...layer, shade };
  });
  const tops = totals.map(() => 0);
  const layers = [...shaded, ...(restTotal > 0 ? [rest] : [])].map((layer) => {
    for (const [i, count] of layer.counts.entries()) tops[i]! += count;
    return { ...layer, tops: [...tops] };
  });
  return { seconds: steps.map(({ from }) => from / 1000), layers, totals };
}
