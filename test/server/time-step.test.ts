import { describe, expect, it } from 'vitest';
import { parseTimeStep, stepFor, timeBuckets, type TimeStep } from '../../server/http/time-step.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Zones, and days around which their clocks are put forward or back. */
const changes: readonly (readonly [zone: string, day: string, what: string])[] = [
  ['Europe/Oslo', '2026-03-29', 'forward at 02:00'],
  ['Europe/Oslo', '2026-10-25', 'back at 03:00'],
  ['America/New_York', '2026-03-08', 'forward at 02:00'],
  ['America/New_York', '2026-11-01', 'back at 02:00'],
  ['Australia/Lord_Howe', '2026-04-05', 'back by half an hour'],
  ['Australia/Lord_Howe', '2026-10-04', 'forward by half an hour'],
  ['America/St_Johns', '2010-11-07', 'back just after midnight'],
  ['America/Sao_Paulo', '2018-11-04', 'forward at midnight'],
  ['America/Havana', '2018-11-04', 'back at 01:00 to midnight'],
  ['Pacific/Apia', '2011-12-30', 'forward by a whole day'],
  ['Asia/Kathmandu', '2026-01-15', 'never'],
  ['UTC', '2026-01-15', 'never'],
];

/** The local time in the zone at each minute around a day, as if it were UTC. */
function wallMinutes(zone: string, day: string): { readonly firstMs: number; readonly walls: number[] } {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  const firstMs = Date.parse(`${day}T00:00:00Z`) - 3 * dayMs;
  const walls = Array.from({ length: (6 * dayMs) / minuteMs }, (_, i) => {
    const shown = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/.exec(format.format(firstMs + i * minuteMs))!;
    const [month, date, year, hour, minute] = shown.slice(1).map(Number) as [
      number,
      number,
      number,
      number,
      number,
    ];
    return Date.UTC(2000 + year, month - 1, date, hour, minute);
  });
  return { firstMs, walls };
}

/** Minutes at which the local time is a multiple of the step since midnight, or has just jumped over one. */
function clockStarts(walls: readonly number[], stepMs: number): number[] {
  const isMultiple = (wall: number): boolean => (wall - Math.floor(wall / dayMs) * dayMs) % stepMs === 0;
  return walls.flatMap((wall, i) => {
    const passed = [wall];
    const expected = i === 0 ? wall : walls[i - 1]! + minuteMs;
    for (let skipped = expected; skipped < wall; skipped += minuteMs) passed.push(skipped);
    return passed.some(isMultiple) ? [i] : [];
  });
}

/** Minutes at which the local time first reaches a day with a new number. */
function dayStarts(walls: readonly number[], numberOf: (day: number) => number): number[] {
  let latest = -Infinity;
  return walls.flatMap((wall, i) => {
    const number = numberOf(Math.floor(wall / dayMs));
    if (number <= latest) return [];
    latest = number;
    return [i];
  });
}

function compareBuckets(
  step: string,
  zone: string,
  firstMs: number,
  minutes: number,
  starts: readonly number[],
): void {
  const parsed = parseTimeStep(step) as TimeStep;
  let next = 0;
  // The buckets before the first start and from the last one on are incomplete.
  for (let i = starts[1]!; i < Math.min(minutes, starts.at(-1)!); i++) {
    while (starts[next + 1]! <= i) next++;
    const wanted = {
      from: firstMs + starts[next]! * minuteMs,
      until: firstMs + starts[next + 1]! * minuteMs,
    };
    for (const timeMs of [firstMs + i * minuteMs, firstMs + (i + 1) * minuteMs - 1]) {
      // Created anew each time, because buckets remember the last one and would not search for this one.
      const { from, until } = timeBuckets(parsed, zone).bucketOf(timeMs);
      if (from !== wanted.from || until !== wanted.until)
        expect({ step, zone, timeMs, from, until }).toEqual({ step, zone, timeMs, ...wanted });
    }
  }
}

describe('buckets of time', () => {
  it.each(changes)('begin at the local times of %s, around %s: %s', (zone, day) => {
    const { firstMs, walls } = wallMinutes(zone, day);
    const clocks: Record<string, number> = {
      '1m': 1,
      '20m': 20,
      '30m': 30,
      '1h': 60,
      '90m': 90,
      '2h': 120,
      '7h': 420,
      '12h': 720,
    };
    for (const [step, minutes] of Object.entries(clocks))
      compareBuckets(step, zone, firstMs, walls.length, clockStarts(walls, minutes * minuteMs));
    compareBuckets(
      '1d',
      zone,
      firstMs,
      walls.length,
      dayStarts(walls, (date) => date),
    );
  });

  it('of days and weeks are counted from Mondays, and those of months and years from Januaries', () => {
    const bucket = (step: string, time: string, zone = 'UTC') => {
      const { from, until } = timeBuckets(parseTimeStep(step) as TimeStep, zone).bucketOf(Date.parse(time));
      return [from, until].map((ms) => new Date(ms).toISOString().slice(0, 16));
    };
    expect(bucket('1w', '2026-11-24T05:00:00Z')).toEqual(['2026-11-23T00:00', '2026-11-30T00:00']);
    expect(bucket('24h', '2026-11-24T05:00:00Z')).toEqual(['2026-11-24T00:00', '2026-11-25T00:00']);
    expect(bucket('7d', '1969-12-31T05:00:00Z')).toEqual(['1969-12-29T00:00', '1970-01-05T00:00']);
    expect(bucket('1mo', '2026-02-24T05:00:00Z')).toEqual(['2026-02-01T00:00', '2026-03-01T00:00']);
    expect(bucket('3mo', '2026-11-24T05:00:00Z')).toEqual(['2026-10-01T00:00', '2027-01-01T00:00']);
    expect(bucket('1y', '0001-01-01T00:00:00Z')).toEqual(['0001-01-01T00:00', '0002-01-01T00:00']);
    expect(bucket('1mo', '2026-03-31T23:00:00Z', 'Europe/Oslo')).toEqual([
      '2026-03-31T22:00',
      '2026-04-30T22:00',
    ]);
    expect(bucket('1d', '2026-03-29T12:00:00Z', 'Europe/Oslo')).toEqual([
      '2026-03-28T23:00',
      '2026-03-29T22:00',
    ]);
    expect(bucket('1h', '2026-11-24T05:00:00Z', 'Asia/Kathmandu')).toEqual([
      '2026-11-24T04:15',
      '2026-11-24T05:15',
    ]);
    expect(bucket('1h', '2026-11-24T05:10:00Z', '+05:30')).toEqual(['2026-11-24T04:30', '2026-11-24T05:30']);
  });

  it('are refused for a text that is not a step', () => {
    for (const text of ['', '1', 'h', '0h', '1.5h', '36h', '1x', '-1h', '10001s', '99999999h', '1h ', '1h1m'])
      expect(parseTimeStep(text), text).toHaveProperty('problem');
    expect(parseTimeStep('48H')).toEqual({ kind: 'days', days: 2 });
    expect(() => timeBuckets({ kind: 'clock', ms: 1000 }, 'Europe/Nowhere')).toThrow('Europe/Nowhere');
  });

  it('are proposed so that their number stays within the limit', () => {
    expect(stepFor(dayMs, 5000)).toBe('1m');
    expect(stepFor(30 * dayMs, 5000)).toBe('15m');
    expect(stepFor(0, 5000)).toBe('1s');
    expect(stepFor(1e6 * 365 * dayMs, 5000)).toBe('1y');
  });
});
