import { calendarEndMs, calendarFromMs, type TimeBucket, type TimeBuckets } from '../../engine/index.js';
import { instantOfWallClock, zoneOffset } from '../../agents/definition/time-value.js';

const dayMs = 86_400_000;
/** The first Monday after the epoch. Buckets of several days or weeks are counted from there. */
const firstMondayMs = 4 * dayMs;
const monthsOfYear = 12;
/** Upper bound of the number before a unit: a larger one is surely a mistake. */
const unitsMax = 10_000;

const unitsMs = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs, w: 7 * dayMs } as const;
const unitsMonths = { mo: 1, y: monthsOfYear } as const;

/** Common steps, in ascending order. */
const usualSteps = ['1s', '5s', '15s', '1m', '5m', '15m', '1h', '3h', '6h', '12h', '1d', '1w', '1mo', '1y'];

/** The length of the buckets that time is divided into. */
export type TimeStep =
  | { readonly kind: 'clock'; readonly ms: number }
  | { readonly kind: 'days'; readonly days: number }
  | { readonly kind: 'months'; readonly months: number };

/** Parses a step as users write it, such as `15m`. Returns a sentence that says what is wrong where it is not valid. */
export function parseTimeStep(text: string): TimeStep | { readonly problem: string } {
  const match = /^(\d{1,5})(s|m|h|d|w|mo|y)$/i.exec(text);
  const count = Number(match?.[1] ?? 0);
  if (match === null || count === 0 || count > unitsMax)
    return {
      problem:
        `${JSON.stringify(text)} is not a step: expected a whole number from 1 to ${unitsMax} with a unit, ` +
        'such as 30s, 5m, 1h, 1d, 1w, 1mo (a month) or 1y',
    };
  const unit = match[2]!.toLowerCase();
  if (unit === 'mo' || unit === 'y') return { kind: 'months', months: count * unitsMonths[unit] };
  const ms = count * unitsMs[unit as keyof typeof unitsMs];
  if (ms % dayMs === 0) return { kind: 'days', days: ms / dayMs };
  if (ms < dayMs) return { kind: 'clock', ms };
  return {
    problem: `the step ${text} is longer than a day, but not a whole number of days: write 1d, 2d and so on`,
  };
}

/** The shortest common step that divides `spanMs` into at most `buckets` buckets; the longest one where none does. */
export function stepFor(spanMs: number, buckets: number): string {
  const fits = (step: string): boolean => {
    const parsed = parseTimeStep(step);
    return 'kind' in parsed && spanMs / shortestMs(parsed) <= buckets;
  };
  return usualSteps.find(fits) ?? usualSteps.at(-1)!;
}

function shortestMs(step: TimeStep): number {
  if (step.kind === 'clock') return step.ms;
  return (step.kind === 'days' ? step.days : step.months * 28) * dayMs;
}

/** Makes the buckets of a step in a time zone. Throws `invalid` for an unknown zone. */
export function timeBuckets(step: TimeStep, zone: string): TimeBuckets {
  // Throws for an unknown zone now, instead of at the first time to be counted.
  zoneOffset(zone, 0);
  switch (step.kind) {
    case 'clock':
      return new ClockBuckets(step.ms, zone);
    case 'days':
      return new CalendarBuckets((wallMs) => daysOf(wallMs, step.days), zone);
    case 'months':
      return new CalendarBuckets((wallMs) => monthsOf(wallMs, step.months), zone);
  }
}

/** A span of local time, as what a wall clock shows, in milliseconds as if it were UTC. */
type WallSpan = TimeBucket;

function daysOf(wallMs: number, days: number): WallSpan {
  const ms = days * dayMs;
  const from = Math.floor((wallMs - firstMondayMs) / ms) * ms + firstMondayMs;
  return { from, until: from + ms };
}

function monthsOf(wallMs: number, months: number): WallSpan {
  const date = new Date(wallMs);
  const first = Math.floor((date.getUTCFullYear() * monthsOfYear + date.getUTCMonth()) / months) * months;
  return { from: monthStart(first), until: monthStart(first + months) };
}

/** The start of a month as local time. `month` counts from January of the year 0. */
function monthStart(month: number): number {
  const date = new Date(0);
  // Date.UTC would take years below 100 as 1900 and later.
  date.setUTCFullYear(Math.floor(month / monthsOfYear), month % monthsOfYear, 1);
  return date.getTime();
}

/**
 * Buckets of whole days, weeks, months or years, from local midnight to local midnight as for the operators `since` and `until`. A day has
 * 23 or 25 hours where clocks are put forward or back.
 */
class CalendarBuckets implements TimeBuckets {
  /** The bucket found last: most times are in the same bucket as the time before. */
  #latest: TimeBucket = { from: 0, until: 0 };

  constructor(
    private readonly spanOf: (wallMs: number) => WallSpan,
    private readonly zone: string,
  ) {}

  bucketOf(timeMs: number): TimeBucket {
    const { from, until } = this.#latest;
    if (timeMs < from || timeMs >= until) this.#latest = this.#find(timeMs);
    return this.#latest;
  }

  #find(timeMs: number): TimeBucket {
    const span = this.spanOf(timeMs + zoneOffset(this.zone, timeMs));
    const bucket = this.#bucketOfSpan(span);
    // Where clocks are put back across midnight, they show the end of the previous day again, after its bucket has ended. These times
    // belong to the next bucket.
    return timeMs < bucket.until ? bucket : this.#bucketOfSpan(this.spanOf(span.until));
  }

  #bucketOfSpan({ from, until }: WallSpan): TimeBucket {
    return { from: instantOfWallClock(this.zone, from), until: instantOfWallClock(this.zone, until) };
  }
}

/**
 * Buckets shorter than a day. A bucket begins whenever the local clock shows a multiple of the step since midnight, or jumps over one. So
 * where clocks are put back by an hour, the repeated hour makes two buckets of an hour each; where they are put back by half an hour, there
 * is one bucket of an hour and a half.
 */
class ClockBuckets implements TimeBuckets {
  constructor(
    private readonly stepMs: number,
    private readonly zone: string,
  ) {}

  bucketOf(timeMs: number): TimeBucket {
    return { from: this.#startOf(timeMs), until: this.#endOf(timeMs) };
  }

  #startOf(timeMs: number): number {
    const offsetMs = zoneOffset(this.zone, timeMs);
    const from = this.#spanOf(timeMs + offsetMs).from - offsetMs;
    if (zoneOffset(this.zone, from) === offsetMs) return from;
    const changeMs = this.#changeBetween(from, timeMs);
    if (this.#beginsAt(changeMs)) return changeMs;
    return this.#startOf(changeMs - 1);
  }

  #endOf(timeMs: number): number {
    const offsetMs = zoneOffset(this.zone, timeMs);
    const until = this.#spanOf(timeMs + offsetMs).until - offsetMs;
    if (zoneOffset(this.zone, until) === offsetMs) return until;
    const changeMs = this.#changeBetween(timeMs, until);
    if (this.#beginsAt(changeMs)) return changeMs;
    return this.#endOf(changeMs);
  }

  /** The local time between two multiples of the step around `wallMs`. The last span of a day ends at midnight. */
  #spanOf(wallMs: number): WallSpan {
    const midnightMs = Math.floor(wallMs / dayMs) * dayMs;
    const from = midnightMs + Math.floor((wallMs - midnightMs) / this.stepMs) * this.stepMs;
    return { from, until: Math.min(from + this.stepMs, midnightMs + dayMs) };
  }

  /** Whether a clock change at this moment begins a bucket: the clock then shows a multiple of the step, or has jumped over one. */
  #beginsAt(changeMs: number): boolean {
    const beforeMs = changeMs + zoneOffset(this.zone, changeMs - 1);
    const afterMs = changeMs + zoneOffset(this.zone, changeMs);
    return this.#spanOf(afterMs).from >= Math.min(beforeMs, afterMs);
  }

  /** Finds by bisection the moment after `fromMs`, at or before `toMs`, at which the offset changes. There must be exactly one. */
  #changeBetween(fromMs: number, toMs: number): number {
    const offsetMs = zoneOffset(this.zone, fromMs);
    let below = fromMs;
    let beyond = toMs;
    while (beyond - below > 1) {
      const middle = Math.floor((below + beyond) / 2);
      if (zoneOffset(this.zone, middle) === offsetMs) below = middle;
      else beyond = middle;
    }
    return beyond;
  }
}

/** A time as local date and time of a zone: `2026-11-24 05:30:00`. Null outside the years that the calendar covers. */
export function wallClock(timeMs: number, zone: string): string | null {
  if (timeMs < calendarFromMs || timeMs >= calendarEndMs) return null;
  const date = new Date(timeMs + zoneOffset(zone, timeMs));
  return date.toISOString().slice(0, -'.000Z'.length).replace('T', ' ');
}

/** The offset of a zone at a time, in ISO 8601: `+01:00`. */
export function offsetText(timeMs: number, zone: string): string {
  const minutes = Math.round(zoneOffset(zone, timeMs) / 60_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
