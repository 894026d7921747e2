import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { compileTimestamp } from '../../../engine/times/timestamp.js';
import { describeUnless } from '../../needs.js';

const now = Date.UTC(2026, 10, 21, 12, 0, 0);

/** The time that a text is read as, in ISO form, or null. */
function read(format: string, text: string, timezone?: string, nowMs = now): string | null {
  const reader = compileTimestamp(timezone === undefined ? { format } : { format, timezone }, 'UTC');
  const timeMs = reader(text, nowMs);
  return timeMs === null ? null : new Date(timeMs).toISOString();
}

describe('named formats', () => {
  test.each([
    ['rfc3339', '2026-11-17T10:00:00Z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00.1Z', '2026-11-17T10:00:00.100Z'],
    ['rfc3339', '2026-11-17T10:00:00.123999999Z', '2026-11-17T10:00:00.123Z'],
    ['rfc3339', '2026-11-17T10:00:00.123456789012345Z', '2026-11-17T10:00:00.123Z'],
    ['rfc3339', '2026-11-17T10:00:00+01:00', '2026-11-17T09:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00.5-05:30', '2026-11-17T15:30:00.500Z'],
    ['rfc3339', '2026-11-17t10:00:00z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17 10:00:00Z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00+0100', '2026-11-17T09:00:00.000Z'],
    ['rfc3339', '2026-11-17 10:00:00.25-0530', '2026-11-17T15:30:00.250Z'],
    ['rfc3339', '2026-11-17T10:00:00+01', '2026-11-17T09:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00+01:00:30', '2026-11-17T08:59:30.000Z'],
    ['rfc3339', '2026-11-17T10:00:00\u221201:00', '2026-11-17T11:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00-00:00', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00,123Z', '2026-11-17T10:00:00.123Z'],
    ['rfc3339', '2026-11-17 10:00:00,123456+0000', '2026-11-17T10:00:00.123Z'],
    ['rfc3339', '2026-11-17T10:00Z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00+05:30', '2026-11-17T04:30:00.000Z'],
    ['rfc3339', '20261117T100000Z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '20261117T100000.5+0100', '2026-11-17T09:00:00.500Z'],
    ['rfc3339', '20261117T1000Z', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2026-11-17T9:00:00Z', '2026-11-17T09:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00+01:00[Europe/Berlin]', '2026-11-17T09:00:00.000Z'],
    ['rfc3339', '2026-11-17T10:00:00Z[Etc/UTC][u-ca=gregory]', '2026-11-17T10:00:00.000Z'],
    ['rfc3339', '2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['rfc3339', '2017-01-01T05:29:60.750+05:30', '2017-01-01T00:00:00.750Z'],
    ['rfc3339', '2016-12-31T15:59:60-0800', '2017-01-01T00:00:00.000Z'],
    ['rfc3339', '1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    ['rfc3339', '0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['rfc3339', '9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
    ['rfc3339nano', '2026-11-17T10:00:00.000000001Z', '2026-11-17T10:00:00.000Z'],
    ['RFC3339Nano', '2026-11-17T10:00:00.987654321+02:00', '2026-11-17T08:00:00.987Z'],
    ['common', '17/Nov/2026:10:00:00 +0000', '2026-11-17T10:00:00.000Z'],
    ['Common', '01/Jan/2026:00:00:00 -0800', '2026-01-01T08:00:00.000Z'],
    ['stamp', 'Nov 17 10:00:00', '2026-11-17T10:00:00.000Z'],
    ['stamp', 'Nov  7 10:00:00', '2026-11-07T10:00:00.000Z'],
    ['STAMP', 'Nov 17 10:00:00.123456', '2026-11-17T10:00:00.123Z'],
    ['unix', '1763700000', '2025-11-21T04:40:00.000Z'],
    ['Unix', '1763700000.123', '2025-11-21T04:40:00.123Z'],
    ['unix', '1763700000.1239', '2025-11-21T04:40:00.123Z'],
    ['unix', '1763700000.5', '2025-11-21T04:40:00.500Z'],
    ['unix', '1.7637e9', '2025-11-21T04:40:00.000Z'],
    ['unix', '0', '1970-01-01T00:00:00.000Z'],
    ['unix', '-0.001', '1969-12-31T23:59:59.999Z'],
    ['unix', '-0.0001', '1969-12-31T23:59:59.999Z'],
  ])('%s reads %s', (format, text, expected) => {
    expect(read(format, text)).toBe(expected);
  });

  test.each([
    ['rfc3339', '2026-02-30T00:00:00Z'],
    ['rfc3339', '2026-02-29T00:00:00Z'],
    ['rfc3339', '2100-02-29T00:00:00Z'],
    ['rfc3339', '2026-04-31T00:00:00Z'],
    ['rfc3339', '2026-00-10T00:00:00Z'],
    ['rfc3339', '2026-13-10T00:00:00Z'],
    ['rfc3339', '2026-01-00T00:00:00Z'],
    ['rfc3339', '2026-01-01T24:00:00Z'],
    ['rfc3339', '2026-01-01T00:60:00Z'],
    ['rfc3339', '2026-01-01T00:00:60Z'],
    ['rfc3339', '2026-01-01T00:00:00'],
    ['rfc3339', '2016-12-31T23:59:60+01:00'],
    ['rfc3339', '2016-12-31T23:59:61Z'],
    ['rfc3339', '2026-01-01T00:00:00 +01:00'],
    ['rfc3339', '2026-01-01T00:00:00+1'],
    ['rfc3339', '2026-01-01T00:00:00+010'],
    ['rfc3339', '2026-01-01T00:00:00+01:'],
    ['rfc3339', '2026-01-01T00:00:00+25'],
    ['rfc3339', '2026-01-01T00:00:00+01:00[Europe/Berlin'],
    ['rfc3339', '2026-01-01T00:00:00[Europe/Berlin]'],
    ['rfc3339', '2026-01-01T00:00:5Z'],
    ['rfc3339', '2026-01-01T00:0000Z'],
    ['rfc3339', '2026-0101T00:00:00Z'],
    ['rfc3339', '20260101T000000'],
    ['rfc3339', '2026-01-01T00Z'],
    ['rfc3339', '2026-01-01Z'],
    ['rfc3339', '2026-01-01T00:00:00+01:60'],
    ['rfc3339', '2026-01-01T00:00:00Z '],
    ['rfc3339', '2026-01-01T00:00:00.Z'],
    ['rfc3339', '2026-01-01'],
    ['rfc3339', ''],
    ['rfc3339', '-'],
    ['common', '17/November/2026:10:00:00 +0000'],
    ['common', '17/Nop/2026:10:00:00 +0000'],
    ['common', '17/Nov/2026:10:00:00'],
    ['stamp', 'Feb 30 00:00:00'],
    ['stamp', 'Nov 17'],
    ['unix', ''],
    ['unix', '12a'],
    ['unix', '1.2.3'],
    ['unix', 'NaN'],
    ['unix', '1763700000123'],
  ])('%s does not read %j', (format, text) => {
    expect(read(format, text)).toBeNull();
  });
});

describe('Go layouts', () => {
  test.each([
    ['02 Jan 2006 15:04:05', '17 Nov 2026 10:00:00', '2026-11-17T10:00:00.000Z'],
    ['2006/01/02 15:04:05', '2026/11/17 10:00:00', '2026-11-17T10:00:00.000Z'],
    ['060102 150405', '081109 203615', '2008-11-09T20:36:15.000Z'],
    ['060102 150405', '690101 000000', '1969-01-01T00:00:00.000Z'],
    ['20060102150405', '20261117100203', '2026-11-17T10:02:03.000Z'],
    ['20060102150405.000', '20261117100203.045', '2026-11-17T10:02:03.045Z'],
    ['Mon Jan 02 15:04:05 2006', 'Sun Dec 04 04:47:44 2005', '2005-12-04T04:47:44.000Z'],
    ['Mon Jan _2 15:04:05 2006', 'Sun Dec  4 04:47:44 2005', '2005-12-04T04:47:44.000Z'],
    ['Monday, January 2, 2006 3:04 PM', 'Tuesday, November 17, 2026 9:05 pm', '2026-11-17T21:05:00.000Z'],
    ['2006-01-02 03:04:05 PM', '2026-11-17 12:00:00 AM', '2026-11-17T00:00:00.000Z'],
    ['2006-01-02 03:04:05 pm', '2026-11-17 12:00:00 pm', '2026-11-17T12:00:00.000Z'],
    ['2006-01-02 15:04:05,000', '2026-11-17 10:00:00,042', '2026-11-17T10:00:00.042Z'],
    ['2006-01-02 15:04:05.999', '2026-11-17 10:00:00', '2026-11-17T10:00:00.000Z'],
    ['2006-01-02 15:04:05.999', '2026-11-17 10:00:00.5', '2026-11-17T10:00:00.500Z'],
    ['2006-01-02 15:04:05', '2026-11-17 10:00:00.250', '2026-11-17T10:00:00.250Z'],
    ['2006-01-02 15:04:05', '2026-11-17 9:00:00', '2026-11-17T09:00:00.000Z'],
    ['2006-01-02T15:04:05.000Z0700', '2026-11-17T10:00:00.001Z', '2026-11-17T10:00:00.001Z'],
    ['2006-01-02T15:04:05.000Z0700', '2026-11-17T10:00:00.001+0100', '2026-11-17T09:00:00.001Z'],
    ['2006-01-02T15:04Z07', '2026-11-17T10:00-03', '2026-11-17T13:00:00.000Z'],
    ['2006-01-02 15:04:05 -07:00:00', '2026-11-17 10:00:00 +01:00:30', '2026-11-17T08:59:30.000Z'],
    ['2006-01-02 15:04:05 -07', '2026-11-17 10:00:00 +02', '2026-11-17T08:00:00.000Z'],
    ['2006-002 15:04', '2026-321 10:00', '2026-11-17T10:00:00.000Z'],
    ['2006-__2 15:04', '2026- 32 10:00', '2026-02-01T10:00:00.000Z'],
    ['2006-1-2 3:4:5PM', '2026-11-7 1:2:3PM', '2026-11-07T13:02:03.000Z'],
    ['2006-01-02 15:04:05 MST', '2026-11-17 10:00:00 UTC', '2026-11-17T10:00:00.000Z'],
    ['2006-01-02 15:04:05 MST', '2026-11-17 10:00:00 GMT+3', '2026-11-17T07:00:00.000Z'],
    ['2006-01-02 15:04:05 MST', '2026-11-17 10:00:00 -03', '2026-11-17T13:00:00.000Z'],
    ['2006-01', '2026-11', '2026-11-01T00:00:00.000Z'],
    ['January 2006', 'november 2026', '2026-11-01T00:00:00.000Z'],
    ['[2006-01-02 15:04]', '[2026-11-17 10:00]', '2026-11-17T10:00:00.000Z'],
  ])('%s reads %s', (layout, text, expected) => {
    expect(read(layout, text)).toBe(expected);
  });

  test.each([
    ['2006-01-02 15:04:05.000', '2026-11-17 10:00:00'],
    ['2006-01-02 15:04:05.000', '2026-11-17 10:00:00.12'],
    ['2006-01-02 15:04:05.000', '2026-11-17 10:00:00.1234'],
    ['02 Jan 2006', '31 Jun 2026'],
    ['2006-002', '2026-366'],
    ['2006-002', '2026-000'],
    ['2006-01-02 03:04 PM', '2026-11-17 13:00 PM'],
    ['2006-01-02 03:04 PM', '2026-11-17 03:00 XM'],
    ['Mon 2006-01-02', 'Nov 2026-11-17'],
    ['2006-01-02 15:04:05', '2026-11-17 10:00:00 tail'],
    ['2006-01-02 15:04:05 MST', '2026-11-17 10:00:00 cet'],
  ])('%s does not read %j', (layout, text) => {
    expect(read(layout, text)).toBeNull();
  });

  test('the day of the year must agree with month and day if both are given', () => {
    expect(read('2006-01-02 002', '2026-11-17 321')).toBe('2026-11-17T00:00:00.000Z');
    expect(read('2006-01-02 002', '2026-11-17 320')).toBeNull();
  });

  test.each([
    'iso8601',
    'datetime',
    'unix_ms',
    'rfc822',
    'rfc1123',
    'ansic',
    '2006',
    '02 15:04',
    '',
    'Month',
  ])('%j is not a format', (format) => {
    expect(() => compileTimestamp({ format }, 'UTC')).toThrow(
      /unknown time format.*expected rfc3339.*Go layout/,
    );
  });
});

describe('formats without a year', () => {
  test.each([
    ['Nov 21 12:00:00', '2026-11-21T12:00:00.000Z', now],
    ['Nov 21 12:00:01', '2026-11-21T12:00:01.000Z', now],
    ['Nov 22 12:00:00', '2026-11-22T12:00:00.000Z', now],
    ['Nov 22 12:00:01', '2025-11-22T12:00:01.000Z', now],
    ['Dec 31 23:59:59', '2025-12-31T23:59:59.000Z', now],
    ['Jan  1 00:00:00', '2026-01-01T00:00:00.000Z', now],
    ['Dec 31 23:59:59', '2026-12-31T23:59:59.000Z', Date.UTC(2027, 0, 1)],
    ['Feb 29 10:00:00', '2024-02-29T10:00:00.000Z', now],
    ['Feb 29 10:00:00', '2028-02-29T10:00:00.000Z', Date.UTC(2028, 2, 1)],
    ['Feb 29 10:00:00', '2028-02-29T10:00:00.000Z', Date.UTC(2028, 1, 28, 10)],
    ['Feb 29 10:00:00', '2024-02-29T10:00:00.000Z', Date.UTC(2028, 1, 28, 9)],
    ['Feb 28 23:59:59', '2027-02-28T23:59:59.000Z', Date.UTC(2027, 2, 1)],
    ['Mar  1 00:00:00', '2027-03-01T00:00:00.000Z', Date.UTC(2027, 1, 28)],
    ['Jan  1 00:00:01', '2027-01-01T00:00:01.000Z', Date.UTC(2026, 11, 31, 23, 59, 59)],
    ['Feb 29 10:00:00', '2096-02-29T10:00:00.000Z', Date.UTC(2104, 1, 28)],
  ])('%s is the latest that is at most a day in the future', (text, expected, nowMs) => {
    expect(read('stamp', text, undefined, nowMs)).toBe(expected);
  });

  test('the year is that of the configured zone', () => {
    const newYearInOslo = Date.UTC(2026, 11, 31, 23, 30);
    expect(read('stamp', 'Jan  1 00:15:00', 'Europe/Oslo', newYearInOslo)).toBe('2026-12-31T23:15:00.000Z');
    expect(read('stamp', 'Jan  1 00:45:00', 'Europe/Oslo', newYearInOslo)).toBe('2026-12-31T23:45:00.000Z');
    expect(read('stamp', 'Jan  2 00:30:01', 'Europe/Oslo', newYearInOslo)).toBe('2026-01-01T23:30:01.000Z');
    // In that zone the new year has begun, and in UTC not yet.
    const before = Date.UTC(2026, 11, 31, 11);
    expect(read('stamp', 'Jan  1 01:00:00', 'Pacific/Kiritimati', before)).toBe('2026-12-31T11:00:00.000Z');
    expect(read('stamp', 'Dec 31 23:59:59', 'Pacific/Pago_Pago', Date.UTC(2027, 0, 1, 12))).toBe(
      '2027-01-01T10:59:59.000Z',
    );
  });

  test('the year may be given, exactly or as a number of years before the latest possible one', () => {
    const stamp = compileTimestamp({ format: 'stamp' }, 'Europe/Oslo');
    expect(stamp('Feb 29 10:00:00', now, 1996)).toBe(Date.UTC(1996, 1, 29, 9));
    expect(stamp('Feb 29 10:00:00', now, 1997)).toBeNull();
    expect(stamp('Nov 21 10:00:00', now, () => 2)).toBe(Date.UTC(2024, 10, 21, 9));
    expect(stamp('Nov 23 10:00:00', now, () => 2)).toBe(Date.UTC(2023, 10, 23, 9));
    expect(stamp('Feb 29 10:00:00', now, () => 3)).toBe(Date.UTC(2020, 1, 29, 9));
  });

  test('a time without a date is the latest that is at most an hour ahead', () => {
    expect(read('15:04:05', '11:59:59')).toBe('2026-11-21T11:59:59.000Z');
    expect(read('15:04:05', '12:00:01')).toBe('2026-11-21T12:00:01.000Z');
    expect(read('15:04:05', '13:00:00')).toBe('2026-11-21T13:00:00.000Z');
    expect(read('15:04:05', '13:00:01')).toBe('2026-11-20T13:00:01.000Z');
    expect(read('15:04:05', '00:30:00', 'UTC', Date.UTC(2026, 10, 21, 23, 45))).toBe(
      '2026-11-22T00:30:00.000Z',
    );
    expect(read('15:04:05', '20:00:00', 'Asia/Tokyo')).toBe('2026-11-21T11:00:00.000Z');
  });
});

describe('zones', () => {
  const layout = '2006-01-02 15:04:05';

  test.each([
    ['UTC', '2026-11-17 10:00:00', '2026-11-17T10:00:00.000Z'],
    ['Europe/Oslo', '2026-11-17 10:00:00', '2026-11-17T09:00:00.000Z'],
    ['Europe/Oslo', '2026-07-17 10:00:00', '2026-07-17T08:00:00.000Z'],
    ['europe/oslo', '2026-07-17 10:00:00', '2026-07-17T08:00:00.000Z'],
    ['America/New_York', '2026-07-17 10:00:00', '2026-07-17T14:00:00.000Z'],
    ['Asia/Kathmandu', '2026-07-17 10:00:00', '2026-07-17T04:15:00.000Z'],
    ['Australia/Lord_Howe', '2026-01-17 10:00:00', '2026-01-16T23:00:00.000Z'],
    ['Pacific/Apia', '2011-12-31 00:00:00', '2011-12-30T10:00:00.000Z'],
    ['+02:00', '2026-11-17 10:00:00', '2026-11-17T08:00:00.000Z'],
    ['-0330', '2026-11-17 10:00:00', '2026-11-17T13:30:00.000Z'],
    ['+02', '2026-11-17 10:00:00', '2026-11-17T08:00:00.000Z'],
    // Local mean time, on dates of the Gregorian calendar even before its introduction.
    ['America/New_York', '1799-12-31 19:03:58', '1800-01-01T00:00:00.000Z'],
    ['America/New_York', '1582-10-14 19:03:58', '1582-10-15T00:00:00.000Z'],
    ['America/New_York', '1582-10-13 19:03:58', '1582-10-14T00:00:00.000Z'],
    ['America/New_York', '1582-10-04 19:03:58', '1582-10-05T00:00:00.000Z'],
    ['America/New_York', '1000-02-27 19:03:58', '1000-02-28T00:00:00.000Z'],
    ['America/New_York', '0000-02-28 19:03:58', '0000-02-29T00:00:00.000Z'],
  ])('%s: %s', (timezone, text, expected) => {
    expect(read(layout, text, timezone)).toBe(expected);
  });

  test('an hour that clocks skip is read with the offset before the change', () => {
    expect(read(layout, '2026-03-29 01:59:59', 'Europe/Oslo')).toBe('2026-03-29T00:59:59.000Z');
    expect(read(layout, '2026-03-29 02:00:00', 'Europe/Oslo')).toBe('2026-03-29T01:00:00.000Z');
    expect(read(layout, '2026-03-29 02:30:00', 'Europe/Oslo')).toBe('2026-03-29T01:30:00.000Z');
    expect(read(layout, '2026-03-29 03:30:00', 'Europe/Oslo')).toBe('2026-03-29T01:30:00.000Z');
  });

  test('an hour that clocks show twice is read as the first of the two', () => {
    expect(read(layout, '2026-10-25 01:59:59', 'Europe/Oslo')).toBe('2026-10-24T23:59:59.000Z');
    expect(read(layout, '2026-10-25 02:30:00', 'Europe/Oslo')).toBe('2026-10-25T00:30:00.000Z');
    expect(read(layout, '2026-10-25 03:00:00', 'Europe/Oslo')).toBe('2026-10-25T02:00:00.000Z');
    expect(read(layout, '2026-11-01 01:30:00', 'America/New_York')).toBe('2026-11-01T05:30:00.000Z');
  });

  test('an offset in the text overrides the zone of the format, which overrides the default', () => {
    expect(read('common', '17/Nov/2026:10:00:00 +0000', 'Asia/Tokyo')).toBe('2026-11-17T10:00:00.000Z');
    expect(compileTimestamp({ format: layout }, 'Asia/Tokyo')('2026-11-17 10:00:00', now)).toBe(
      Date.UTC(2026, 10, 17, 1),
    );
    const both = compileTimestamp({ format: layout, timezone: 'UTC' }, 'Asia/Tokyo');
    expect(both('2026-11-17 10:00:00', now)).toBe(Date.UTC(2026, 10, 17, 10));
  });

  test('Local is the zone of this machine', () => {
    const local = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    expect(read(layout, '2026-07-17 10:00:00', 'Local')).toBe(read(layout, '2026-07-17 10:00:00', local));
  });

  test('an ambiguous abbreviation is read only if the zone is configured', () => {
    expect(read('2006-01-02 15:04 MST', '2026-11-17 10:00 CST')).toBeNull();
    expect(read('2006-01-02 15:04 MST', '2026-11-17 10:00 CST', 'Asia/Shanghai')).toBe(
      '2026-11-17T02:00:00.000Z',
    );
    expect(read('2006-01-02 15:04 MST', '2026-11-17 10:00 GMT', 'Asia/Shanghai')).toBe(
      '2026-11-17T10:00:00.000Z',
    );
  });

  test.each(['Europe/Olso', 'CET+1', '+25:00', '+01:75', 'nowhere', ''])('%j is not a zone', (timezone) => {
    expect(() => compileTimestamp({ format: layout, timezone }, 'UTC')).toThrow(/unknown time zone.*IANA/);
  });
});

const folder = fileURLToPath(new URL('../../../../shared/logs/', import.meta.url));
const missingLogs = existsSync(folder) ? null : 'the logs are not beside the checkout';

describeUnless(missingLogs, 'real logs', () => {
  const systems = [
    {
      file: 'Apache/Apache_2k.log',
      time: /^\[([^\]]+)\]/,
      format: 'Mon Jan 02 15:04:05 2006',
      first: '2005-12-04T04:47:44.000Z',
    },
    {
      file: 'HDFS/HDFS_2k.log',
      time: /^(\d{6} \d{6})/,
      format: '060102 150405',
      first: '2008-11-09T20:36:15.000Z',
    },
    {
      file: 'Linux/Linux_2k.log',
      time: /^(\w{3} [ \d]\d \d\d:\d\d:\d\d)/,
      format: 'stamp',
      first: '2026-06-14T15:16:01.000Z',
    },
    {
      file: 'OpenSSH/OpenSSH_2k.log',
      time: /^(\w{3} [ \d]\d \d\d:\d\d:\d\d)/,
      format: 'stamp',
      first: '2025-12-10T06:55:46.000Z',
    },
  ];

  test.each(systems)('every line of $file has a time', ({ file, time, format, first }) => {
    const lines = readFileSync(folder + file, 'utf8')
      .split(/\r?\n/)
      .filter((line) => line !== '');
    expect(lines.length).toBe(2000);
    const times = lines.map((line) => read(format, time.exec(line)![1]!));
    expect(times[0]).toBe(first);
    expect(times).not.toContain(null);
  });
});
