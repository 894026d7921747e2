import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { parseTimeValue, instantOfWallClock, zoneOffset } from '../../agents/definition/time-value.js';

const now = Date.UTC(2026, 0, 15, 12, 0, 0, 250);

function read(text: string, timezone = 'UTC'): string {
  const value = parseTimeValue(text, { now, timezone });
  return 'ms' in value
    ? Number.isSafeInteger(Number(value.ms)) && Math.abs(Number(value.ms)) < 8.64e15
      ? new Date(Number(value.ms)).toISOString()
      : String(value.ms)
    : value.problem;
}

describe('absolute times', () => {
  it.each([
    ['2025-01-02 03:04:05', '2025-01-02T03:04:05.000Z'],
    ['2025-01-02', '2025-01-02T00:00:00.000Z'],
    ['2025-01-02T03:04:05', '2025-01-02T03:04:05.000Z'],
    ['2025-01-02t03:04:05z', '2025-01-02T03:04:05.000Z'],
    ['2025-01-02 03:04:05Z', '2025-01-02T03:04:05.000Z'],
    ['2025-01-02 03:04:05.5', '2025-01-02T03:04:05.500Z'],
    ['2025-01-02 03:04:05.123', '2025-01-02T03:04:05.123Z'],
    ['2025-01-02 03:04:05.123000000', '2025-01-02T03:04:05.123Z'],
    ['2025-01-02 03:04:05.123000001', '2025-01-02T03:04:05.124Z'],
    ['2025-01-02 03:04:05.9999', '2025-01-02T03:04:06.000Z'],
    ['2025-01-02T03:04:05+02:00', '2025-01-02T01:04:05.000Z'],
    ['2025-01-02T03:04:05-05:30', '2025-01-02T08:34:05.000Z'],
    ['2025-01-02 03:04:05.25+02:00', '2025-01-02T01:04:05.250Z'],
    ['2025-01-02Z', '2025-01-02T00:00:00.000Z'],
    ['2025-01-02+02:00', '2025-01-01T22:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31 23:59:59', '9999-12-31T23:59:59.000Z'],
  ])('%s is %s', (text, expected) => {
    expect(read(text)).toBe(expected);
  });

  it.each([
    ['2025-01-02 03:04:05 02:00', '2025-01-02T01:04:05.000Z'],
    ['2025-01-02T03:04:05 02:00', '2025-01-02T01:04:05.000Z'],
    ['2025-01-02T03:04:05.5 00:00', '2025-01-02T03:04:05.500Z'],
  ])('reads the blank in %j as an unescaped + of an offset', (text, expected) => {
    expect(read(text)).toBe(expected);
  });

  it.each([
    ['2025-02-30', /no day 2025-02-30/],
    ['2023-02-29', /no day 2023-02-29/],
    ['2025-13-01', /no day/],
    ['2025-00-10', /no day/],
    ['2025-01-00', /no day/],
    ['2025-01-02 24:00:00', /no 24:00:00/],
    ['2025-01-02 03:60:00', /no 03:60:00/],
    ['2025-01-02 23:59:60', /no 23:59:60/],
    ['2025-01-02 03:04', /lacks the seconds/],
    ['2025-01-02T03:04:05+25:00', /not an offset/],
    ['2025-01-02T03:04:05+02', /is not a time/],
    ['2025-01-02 03:04:05 -02:00', /is not a time/],
    ['2025-01-02 03:04:05Z 02:00', /is not a time/],
    ['2025-1-2', /is not a time/],
    ['2025-01-02 03:04:05.', /is not a time/],
    [' 2025-01-02', /is not a time/],
    ['2025-01-02 ', /is not a time/],
    ['12025-01-02', /is not a time/],
    ['', /is not a time/],
    ['yesterday', /is not a time/],
    ['٢٠٢٥-01-02', /is not a time/],
  ])('refuses %j', (text, expected) => {
    expect(read(text)).toMatch(expected);
  });
});

describe('relative times', () => {
  it.each([
    ['90s', 90],
    ['15m', 900],
    ['12h', 43_200],
    ['7d', 604_800],
    ['7D', 604_800],
    ['2w', 1_209_600],
    ['1y', 31_536_000],
    ['1d12h', 129_600],
    ['1D12h30M5s', 131_405],
    ['0s', 0],
    ['007m', 420],
  ])('%s is %d seconds before now', (text, seconds) => {
    expect(parseTimeValue(text, { now, timezone: 'UTC' })).toEqual({ ms: BigInt(now - seconds * 1000) });
  });

  it.each([['1x'], ['d'], ['1.5h'], ['-1h'], ['1h '], ['1d 12h'], ['1hx']])('refuses %j', (text) => {
    expect(read(text)).toMatch(/is not a time/);
  });

  it('is exact far back, and refuses times beyond 64 bits', () => {
    expect(parseTimeValue('99999999d', { now, timezone: 'UTC' })).toEqual({
      ms: BigInt(now) - 99_999_999n * 86_400_000n,
    });
    expect(read('99999999999999999999d')).toMatch(/out of the range/);
  });
});

describe('epoch milliseconds', () => {
  it('are accepted from 10^11 on, exactly', () => {
    expect(parseTimeValue('100000000000', { now, timezone: 'UTC' })).toEqual({ ms: 100_000_000_000n });
    expect(parseTimeValue('1735787045123', { now, timezone: 'UTC' })).toEqual({ ms: 1_735_787_045_123n });
    expect(parseTimeValue('9223372036854775807', { now, timezone: 'UTC' })).toEqual({
      ms: 9_223_372_036_854_775_807n,
    });
  });

  it.each([['99999999999'], ['1735787045'], ['20250102'], ['0'], ['5'], ['-5'], ['-1735787045123']])(
    'asks %j for a unit',
    (text) => {
      expect(read(text)).toMatch(/has no unit/);
    },
  );

  it('refuses integers beyond 64 bits', () => {
    expect(read('9223372036854775808')).toMatch(/out of the range/);
  });
});

describe('the timezone setting', () => {
  it.each([
    ['Europe/Oslo', '2025-01-02', '2025-01-01T23:00:00.000Z'],
    ['Europe/Oslo', '2025-07-02 12:00:00', '2025-07-02T10:00:00.000Z'],
    ['America/New_York', '2025-07-02 12:00:00', '2025-07-02T16:00:00.000Z'],
    ['Asia/Kolkata', '2025-07-02 12:00:00', '2025-07-02T06:30:00.000Z'],
    // An explicit offset overrides the setting.
    ['Europe/Oslo', '2025-07-02 12:00:00Z', '2025-07-02T12:00:00.000Z'],
    ['Europe/Oslo', '2025-07-02T12:00:00-01:00', '2025-07-02T13:00:00.000Z'],
    // Clocks go forward: 02:00 to 03:00 is skipped, and every time in it means the moment of the change.
    ['Europe/Oslo', '2025-03-30 01:59:59', '2025-03-30T00:59:59.000Z'],
    ['Europe/Oslo', '2025-03-30 02:00:00', '2025-03-30T01:00:00.000Z'],
    ['Europe/Oslo', '2025-03-30 02:30:00', '2025-03-30T01:00:00.000Z'],
    ['Europe/Oslo', '2025-03-30 03:00:00', '2025-03-30T01:00:00.000Z'],
    // Clocks go back: 02:30 occurs twice, and the first is meant.
    ['Europe/Oslo', '2025-10-26 02:30:00', '2025-10-26T00:30:00.000Z'],
    ['Europe/Oslo', '2025-10-26 03:00:00', '2025-10-26T02:00:00.000Z'],
    ['America/New_York', '2025-11-02 01:30:00', '2025-11-02T05:30:00.000Z'],
    // A midnight that does not exist: the day begins at 01:00.
    ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z'],
    // A whole day that does not exist.
    ['Pacific/Apia', '2011-12-30 12:00:00', '2011-12-30T10:00:00.000Z'],
    ['+02:00', '2025-07-02 12:00:00', '2025-07-02T10:00:00.000Z'],
    // Long before there were zones, by the Gregorian calendar.
    ['America/New_York', '1582-10-09 19:03:58', '1582-10-10T00:00:00.000Z'],
    ['America/New_York', '1000-02-27 19:03:58', '1000-02-28T00:00:00.000Z'],
    // A change of half an hour.
    ['Australia/Lord_Howe', '2025-10-05 02:15:00', '2025-10-04T15:30:00.000Z'],
  ])('%s: %s is %s', (zone, text, expected) => {
    expect(read(text, zone)).toBe(expected);
  });

  it('finds the first instant whose local time is not earlier', () => {
    const zones = [
      'UTC',
      'Europe/Oslo',
      'America/New_York',
      'Australia/Lord_Howe',
      'Pacific/Apia',
      'Africa/Casablanca',
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: Date.UTC(1975, 0, 1), max: Date.UTC(2037, 0, 1) }),
        fc.integer({ min: 1, max: 7_200_000 }),
        (zone, wallMs, stepMs) => {
          const instant = instantOfWallClock(zone, wallMs);
          expect(instant + zoneOffset(zone, instant)).toBeGreaterThanOrEqual(wallMs);
          expect(instant - 1 + zoneOffset(zone, instant - 1)).toBeLessThan(wallMs);
          // Later local times never map to earlier instants, so adjacent time ranges stay adjacent.
          expect(instantOfWallClock(zone, wallMs + stepMs)).toBeGreaterThanOrEqual(instant);
        },
      ),
      { numRuns: caseCount(400) },
    );
  });
});
