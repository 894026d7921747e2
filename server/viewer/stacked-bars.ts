import type { HistogramState } from './state/histogram.js';
import { severityOf, severityRank, type Severity } from './state/field.js';

/** A layer of the bars, with a colour of its own. */
export interface BarLayer {
  readonly name: string;
  /** Undefined for the layer of all other values. */
  readonly value?: string | undefined;
  readonly total: number;
  readonly severity: Severity;
  /** The number of the colour, for values without a severity; -1 for the layer of other values. */
  readonly hue: number;
  /** The number of the shade among values of the same severity; 0 is the full colour. */
  readonly shade: number;
  /** For each step, the height of the bar up to and including this layer. */
  readonly tops: readonly number[];
  /** For each step, the number of records of this layer. */
  readonly counts: readonly number[];
}

/** The bars of a histogram: equal steps without gaps, each divided into layers. */
export interface StackedBars {
  /** The start of each step, in seconds since the epoch. */
  readonly seconds: readonly number[];
  /** From the bottom up. */
  readonly layers: readonly BarLayer[];
  readonly totals: readonly number[];
  /** For each step, the number that the line shows; null where it has none. */
  readonly numbers: readonly (number | string | null)[];
}

/** Upper bound of the drawn steps. The page never requests more; a response with more is not drawn to its end. */
const stepsMax = 1000;

interface Step {
  readonly from: number;
  readonly count: number;
  readonly values: readonly number[];
  readonly number: number | string | null;
}

/** Maximum number of layers: more colours could not be distinguished. Other values are drawn as one layer. */
const layersMax = 8;

/** The values with a layer of their own: first those that mean errors, as they are rare, then the most frequent others. */
function ownLayers<T extends { readonly severity: Severity }>(values: readonly T[]): readonly T[] {
  const errors = values.filter(({ severity }) => severity === 'error');
  const others = values.filter(({ severity }) => severity !== 'error');
  return [...errors, ...others].slice(0, layersMax);
}

/** All steps of the extent. The response omits steps without records; they are added. */
function allSteps({ buckets, extent, step, line }: HistogramState): Step[] {
  if (extent === undefined || step === undefined) return [];
  const inside = buckets.filter(({ from, until }) => until > extent.sinceMs && from < extent.untilMs);
  const empty = (from: number): Step => ({ from, count: 0, values: [], number: null });
  const begin = inside[0]?.from ?? Math.floor(extent.sinceMs / step.lengthMs) * step.lengthMs;
  const before = Math.max(0, Math.ceil((begin - extent.sinceMs) / step.lengthMs));
  const steps: Step[] = [];
  for (let i = before; i > 0; i -= 1) steps.push(empty(begin - i * step.lengthMs));
  let next = begin;
  for (const { from, until, count, values = [], of } of inside) {
    // On a day of 25 hours an hour is left over. A gap of less than a step is ignored.
    for (; from - next >= step.lengthMs * 0.9 && steps.length < stepsMax; next += step.lengthMs)
      steps.push(empty(next));
    const number = line === undefined ? undefined : of?.[line.field]?.[line.fn];
    steps.push({ from, count, values, number: number ?? null });
    next = until;
  }
  for (; next < extent.untilMs && steps.length < stepsMax; next += step.lengthMs) steps.push(empty(next));
  return steps;
}

/** Stacks the counts of a histogram, with the worst severity at the bottom. */
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
  const layerCounts = new Map<Severity, number>();
  const shaded = named.map((layer) => {
    const shade = layer.severity === 'other' ? 0 : (layerCounts.get(layer.severity) ?? 0);
    layerCounts.set(layer.severity, shade + 1);
    return { ...layer, shade };
  });
  const tops = totals.map(() => 0);
  const layers = [...shaded, ...(restTotal > 0 ? [rest] : [])].map((layer) => {
    for (const [i, count] of layer.counts.entries()) tops[i]! += count;
    return { ...layer, tops: [...tops] };
  });
  const seconds = steps.map(({ from }) => from / 1000);
  return { seconds, layers, totals, numbers: steps.map(({ number }) => number) };
}

/** The least and the greatest number of the line; undefined where there is none. */
export function lineRange({ numbers }: StackedBars): readonly [min: number, max: number] | undefined {
  const drawn = numbers.filter((number) => number !== null).map(Number);
  return drawn.length === 0 ? undefined : [Math.min(...drawn), Math.max(...drawn)];
}
