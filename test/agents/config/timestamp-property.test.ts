import { expect, test } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { compileTimestamp } from '../../../engine/times/timestamp.js';

const numRuns = caseCount(1500, 200_000);

const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

const two = (value: number): string => String(value).padStart(2, '0');

/** How Go writes each part of a layout, computed from the date alone, without the code under test. */
const writers: Readonly<Record<string, (date: Date) => string>> = {
  '2006': (date) => String(date.getUTCFullYear()).padStart(4, '0'),
  '06': (date) => two(date.getUTCFullYear() % 100),
  January: (date) => months[date.getUTCMonth()]!,
  Jan: (date) => months[date.getUTCMonth()]!.slice(0, 3),
  '01': (date) => two(date.getUTCMonth() + 1),
  '1': (date) => String(date.getUTCMonth() + 1),
  '02': (date) => two(date.getUTCDate()),
  _2: (date) => String(date.getUTCDate()).padStart(2),
  '2': (date) => String(date.getUTCDate()),
  Monday: (date) => weekdays[date.getUTCDay()]!,
  Mon: (date) => weekdays[date.getUTCDay()]!.slice(0, 3),
  '15': (date) => two(date.getUTCHours()),
  '03 PM': (date) => `${two(date.getUTCHours() % 12 || 12)} ${date.getUTCHours() < 12 ? 'AM' : 'PM'}`,
  '3pm': (date) => `${date.getUTCHours() % 12 || 12}${date.getUTCHours() < 12 ? 'am' : 'pm'}`,
  '04': (date) => two(date.getUTCMinutes()),
  '4': (date) => String(date.getUTCMinutes()),
  '05.000': (date) => `${two(date.getUTCSeconds())}.${String(date.getUTCMilliseconds()).padStart(3, '0')}`,
  '05,000000': (date) =>
    `${two(date.getUTCSeconds())},${String(date.getUTCMilliseconds()).padStart(3, '0')}999`,
  '5.999': (date) => `${date.getUTCSeconds()}.${String(date.getUTCMilliseconds()).padStart(3, '0')}`,
  '05': (date) => `${two(date.getUTCSeconds())}.${String(date.getUTCMilliseconds()).padStart(3, '0')}`,
};

const part = (...names: string[]): fc.Arbitrary<string> => fc.constantFrom(...names);
const separator = fc.constantFrom(' ', '/', ' - ', 'T', '|', ' at ', '  ');

/** Offsets in minutes, and the forms that a layout may use for them. */
const offsetForms: Readonly<Record<string, (sign: string, hours: string, minutes: string) => string>> = {
  '-0700': (sign, hours, minutes) => sign + hours + minutes,
  '-07:00': (sign, hours, minutes) => `${sign}${hours}:${minutes}`,
  Z0700: (sign, hours, minutes) => (hours === '00' && minutes === '00' ? 'Z' : sign + hours + minutes),
  'Z07:00': (sign, hours, minutes) =>
    hours === '00' && minutes === '00' ? 'Z' : `${sign}${hours}:${minutes}`,
};

const layoutParts = fc
  .record({
    weekday: fc.option(part('Mon', 'Monday'), { nil: undefined }),
    year: part('2006', '06'),
    month: part('January', 'Jan', '01', '1'),
    day: part('02', '_2', '2'),
    hour: part('15', '03 PM', '3pm'),
    minute: part('04', '4'),
    second: part('05.000', '05,000000', '5.999', '05'),
    yearFirst: fc.boolean(),
    separators: fc.array(separator, { minLength: 6, maxLength: 6 }),
  })
  .map(({ weekday, year, month, day, hour, minute, second, yearFirst, separators }) => {
    const date = yearFirst ? [year, month, day] : [day, month, year];
    return {
      parts: [...(weekday === undefined ? [] : [weekday]), ...date, hour, minute, second],
      separators,
    };
  });

test('a time written in any layout is read back to the millisecond', () => {
  // Two-digit years mean 1969 to 2068.
  const instant = fc.integer({ min: Date.UTC(1969, 0, 2), max: Date.UTC(2068, 11, 30) });
  const offset = fc.record({
    form: fc.constantFrom(...Object.keys(offsetForms)),
    minutes: fc.integer({ min: -14 * 60, max: 14 * 60 }),
  });
  fc.assert(
    fc.property(
      layoutParts,
      instant,
      fc.option(offset, { nil: undefined }),
      ({ parts, separators }, instantMs, zone) => {
        const minutes = zone?.minutes ?? 0;
        const wall = new Date(instantMs + minutes * 60_000);
        const join = (texts: readonly string[]): string =>
          texts.reduce((all, text, i) => all + (i === 0 ? '' : separators[i - 1]!) + text, '');
        let layout = join(parts);
        let text = join(parts.map((name) => writers[name]!(wall)));
        if (zone !== undefined) {
          const size = Math.abs(minutes);
          layout += ` ${zone.form}`;
          text += ` ${offsetForms[zone.form]!(minutes < 0 ? '-' : '+', two(Math.floor(size / 60)), two(size % 60))}`;
        }
        expect(compileTimestamp({ format: layout }, 'UTC')(text, Date.now()), `${layout} ← ${text}`).toBe(
          instantMs,
        );
      },
    ),
    { numRuns },
  );
});

test('a local time in any zone is read as an instant at which clocks there show it', () => {
  const zones = [
    'Europe/Oslo',
    'America/New_York',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'America/Sao_Paulo',
    'Africa/Casablanca',
    'Asia/Tehran',
  ];
  const readers = new Map(
    zones.map((zone) => [zone, compileTimestamp({ format: '2006-01-02 15:04:05', timezone: zone }, 'UTC')]),
  );
  const clocks = new Map(
    zones.map((zone) => [
      zone,
      new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }),
    ]),
  );
  const second = fc.integer({ min: Date.UTC(1975, 0, 1) / 1000, max: Date.UTC(2037, 0, 1) / 1000 });
  fc.assert(
    fc.property(fc.constantFrom(...zones), second, (zone, instantSeconds) => {
      const clock = clocks.get(zone)!;
      const text = clock.format(instantSeconds * 1000);
      const timeMs = readers.get(zone)!(text, Date.now());
      expect(timeMs).not.toBeNull();
      expect(clock.format(timeMs!), `${zone} ${text}`).toBe(text);
      // If clocks show the time twice, the first instant is meant.
      expect(timeMs!).toBeLessThanOrEqual(instantSeconds * 1000);
    }),
    { numRuns },
  );
});

test('a time without a year is read back from one day ahead to nearly a year ago', () => {
  const writer = new Intl.DateTimeFormat('en-US', {
    timeZone: 'America/New_York',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
  const reader = compileTimestamp({ format: 'stamp', timezone: 'America/New_York' }, 'UTC');
  const nows = fc.integer({ min: Date.UTC(2001, 0, 1) / 1000, max: Date.UTC(2050, 0, 1) / 1000 });
  fc.assert(
    fc.property(nows, fc.integer({ min: -86_400, max: 363 * 86_400 }), (nowSeconds, ageSeconds) => {
      const instantMs = (nowSeconds - ageSeconds) * 1000;
      const parts = Object.fromEntries(
        writer.formatToParts(instantMs).map(({ type, value }) => [type, value]),
      );
      const text = `${parts['month']} ${parts['day']!.replace(/^0/, ' ')} ${parts['hour']}:${parts['minute']}:${parts['second']}`;
      const timeMs = reader(text, nowSeconds * 1000)!;
      expect(timeMs).toBeLessThanOrEqual((nowSeconds + 86_400) * 1000);
      const shownTwiceMs = 3_600_000;
      expect(
        Math.abs(instantMs - timeMs) === 0 || instantMs - timeMs === shownTwiceMs,
        `${text} at ${nowSeconds}`,
      ).toBe(true);
    }),
    { numRuns },
  );
});

test('no text makes a reader throw, or return a time that is not a safe integer', () => {
  const formats = [
    'rfc3339',
    'common',
    'stamp',
    'unix',
    'Mon Jan _2 15:04:05 MST 2006',
    '2006-002 3:4:5.000PM -07',
  ];
  const readers = formats.map((format) => compileTimestamp({ format }, 'UTC'));
  const noise = fc.string({
    unit: fc.constantFrom(...'0123456789 :-+.,TZJanFebMonUTC/é\u{1F600}'),
    maxLength: 40,
  });
  fc.assert(
    fc.property(noise, (text) => {
      for (const reader of readers) {
        const timeMs = reader(text, 1_800_000_000_000);
        if (timeMs !== null) expect(Number.isSafeInteger(timeMs)).toBe(true);
      }
    }),
    { numRuns },
  );
});
