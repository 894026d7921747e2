import type { Extent } from '../query/time-range.js';

/** A step of the histogram. `text` is its form for the count route. */
export interface TimeStep {
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
export function stepFor({ sinceMs, untilMs }: Extent, stepsMax: number): TimeStep {
  const shortest = (untilMs - sinceMs) / stepsMax;
  return steps.find(({ lengthMs }) => lengthMs >= shortest) ?? steps.at(-1)!;
}
