import type { Random } from './random.js';

const hourMs = 3_600_000;

/** Relative load of each hour of the day (UTC): low before dawn, high by day, with a second peak in the evening. */
const hourWeights = [
  38, 28, 21, 17, 15, 17, 26, 45, 72, 90, 98, 100, 94, 96, 99, 97, 92, 88, 84, 86, 90, 85, 70, 52,
];
/** Relative load of each day of the week, from Sunday. */
const dayWeights = [0.62, 1, 1.06, 1.08, 1.05, 0.97, 0.68];

/**
 * Arrival times of `rows` records over `days` days from `startMs`, in ascending order, in milliseconds since the epoch. Each hour gets its
 * share of the records by its load, whatever the number of rows.
 */
export function* arrivalTimes(
  rows: number,
  startMs: number,
  days: number,
  random: Random,
): Generator<number> {
  const hours = Math.max(1, Math.round(days * 24));
  const cumulative = new Float64Array(hours + 1);
  for (let hour = 0; hour < hours; hour++) {
    const at = new Date(startMs + hour * hourMs);
    const weight =
      hourWeights[at.getUTCHours()]! * dayWeights[at.getUTCDay()]! * (0.85 + 0.3 * random.fraction());
    cumulative[hour + 1] = cumulative[hour]! + weight;
  }
  const total = cumulative[hours]!;
  let hour = 0;
  for (let row = 0; row < rows; row++) {
    const load = ((row + random.fraction()) / rows) * total;
    while (hour < hours - 1 && cumulative[hour + 1]! <= load) hour++;
    const share = (load - cumulative[hour]!) / (cumulative[hour + 1]! - cumulative[hour]!);
    yield Math.floor(startMs + (hour + share) * hourMs);
  }
}
