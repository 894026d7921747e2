import {
  readFraction,
  twoDigits,
  ZoneSource,
  TimeParts,
  parseGoLayout,
  type GoLayout,
  readByLayout,
} from './time-layout.js';
import { LogstrataError } from '../core/errors.js';
import { findZone, type Zone } from './zone.js';

const hyphen = 0x2d;
const colon = 0x3a;

/**
 * Reads the whole of `text` as a time of RFC 3339 into `parts`; returns false for another text. Logs spell such times in more
 * ways than the RFC has, all of which mean the same: with a blank or small letters (RFC 3339, 5.6), with a comma before the
 * fraction, with an offset of `+0100` or `+01`, without hyphens and colons, or without seconds (ISO 8601), and with the name of
 * the zone behind (RFC 9557). What has no offset is not read, because it could be anywhere, nor is what has no time of day.
 */
function readIsoTime(text: string, parts: TimeParts): boolean {
  parts.clear();
  let at = readDate(text, parts);
  if (at < 0 || !'Tt '.includes(text.charAt(at))) return false;
  at = readClock(text, at + 1, parts);
  if (at < 0) return false;
  at = readZone(text, at, parts);
  while (text.charAt(at) === '[') at = text.indexOf(']', at) + 1;
  return at > 0 && at === text.length && (parts.second < 60 || isLeapSecond(parts));
}

/** Reads `2026-11-17` or `20261117`. Returns the position after it, or -1; so do the others. */
function readDate(text: string, parts: TimeParts): number {
  const gap = text.charCodeAt(4) === hyphen ? 1 : 0;
  const high = twoDigits(text, 0);
  const low = twoDigits(text, 2);
  parts.year = high * 100 + low;
  parts.month = twoDigits(text, 4 + gap);
  parts.day = twoDigits(text, 6 + 2 * gap);
  if (high < 0 || low < 0 || parts.month < 1 || parts.month > 12 || parts.day < 1) return -1;
  return gap === 1 && text.charCodeAt(7) !== hyphen ? -1 : 8 + 2 * gap;
}

/** Reads `10:00:00.123`, `100000,123`, `10:00` or `1000`; the hour may have one digit before a colon. */
function readClock(text: string, start: number, parts: TimeParts): number {
  const isShort = text.charCodeAt(start + 1) === colon;
  let at = isShort ? start + 1 : start + 2;
  parts.hour = isShort ? twoDigits(`0${text.charAt(start)}`, 0) : twoDigits(text, start);
  const gap = text.charCodeAt(at) === colon ? 1 : 0;
  parts.minute = twoDigits(text, at + gap);
  at += gap + 2;
  if (parts.hour < 0 || parts.hour > 23 || parts.minute < 0 || parts.minute > 59) return -1;
  const second = gap === 1 && text.charCodeAt(at) !== colon ? -1 : twoDigits(text, at + gap);
  if (second < 0) return at;
  parts.second = second;
  return second > 60 ? -1 : readFraction(text, at + gap + 2, 0, parts);
}

/** Reads `Z`, `+01:00`, `+0100`, `+01` or `+01:00:30`; the sign may be the minus of typesetting, as in ISO 8601. */
function readZone(text: string, at: number, parts: TimeParts): number {
  const sign = text.charAt(at);
  parts.zoneSource = ZoneSource.offset;
  parts.offsetSeconds = 0;
  if (sign === 'Z' || sign === 'z') return at + 1;
  if (!/[+\-\u2212]/.test(sign)) return -1;
  let end = at + 1;
  let offsetSeconds = 0;
  for (const unit of [3600, 60, 1]) {
    const gap = unit < 3600 && text.charCodeAt(end) === colon ? 1 : 0;
    const value = twoDigits(text, end + gap);
    // Nothing but the hours is required, but what has begun must be whole.
    if (value < 0 && (unit === 3600 || gap === 1)) return -1;
    if (value < 0) break;
    if (value > (unit === 3600 ? 24 : 59)) return -1;
    offsetSeconds += value * unit;
    end += gap + 2;
  }
  parts.offsetSeconds = sign === '+' ? offsetSeconds : -offsetSeconds;
  return end;
}

/** Whether a sixtieth second ends a day of UTC, as a leap second does. It is read as the second after it, as clocks count it. */
function isLeapSecond({ hour, minute, offsetSeconds }: TimeParts): boolean {
  return ((hour * 60 + minute + 1) * 60 - offsetSeconds) % 86_400 === 0;
}

/** Names of formats. A format in a configuration is one of these, in any case, or a Go layout. */
export const timestampFormatNames = ['rfc3339', 'rfc3339nano', 'common', 'stamp', 'unix'] as const;

export type TimestampFormatName = (typeof timestampFormatNames)[number];

/**
 * Reads a text as milliseconds since the epoch, rounded down; null where it is not in the format or is a time that does not
 * exist. `writtenMs` is needed for formats without a year or date: the text was written at that time at the latest, apart
 * from small differences between clocks.
 *
 * @param year for texts without a year: the year; or a function that returns how many years before the latest possible year
 * the text is, given its time in the latest one (there, a 29th of February that does not exist is the 1st of March)
 */
export type TimestampReader = (text: string, writtenMs: number, year?: YearOfText) => number | null;

/** The year of a text that has none, where more is known than when it was written. */
export type YearOfText = number | ((latestMs: number) => number);

const dayMs = 86_400_000;

/**
 * How far a time may be ahead of the clock that it is compared with, because clocks differ and zones are misconfigured. If a
 * line one second ahead were taken as past, it would be a year old, and retention would delete it. Without a date, a
 * tolerance of more than an hour would take this evening's times as yesterday's.
 */
const aheadMsMax = { withoutYear: dayMs, withoutDate: 3_600_000 };

/** A `unix` number of at least this can't be in seconds (it would be the year 5138); most likely it is in milliseconds. It is not read. */
const unixSecondsMax = 1e11;

/** Leap years are at most this many years apart, as around 1900 and 2100. */
const leapYearsApartMax = 8;

/** Whether `name`, in lower case, is a named format; anything else is a Go layout. */
export function isTimestampFormatName(name: string): name is TimestampFormatName {
  return (timestampFormatNames as readonly string[]).includes(name);
}

/**
 * Compiles a format. Texts without an offset are wall times in the format's zone, or else in `defaultTimezone`; `Zone`
 * defines what happens when clocks change. An abbreviation other than UTC and GMT is ambiguous (`CST` is three zones): it is
 * taken as the format's own zone, and without one the text is not readable. Throws `invalid` for an unknown format or zone.
 */
export function compileTimestamp(format: TimestampFormat, defaultTimezone: string): TimestampReader {
  const zone = findZone(format.timezone ?? defaultTimezone);
  const name = format.format.toLowerCase();
  if (!isTimestampFormatName(name))
    return layoutReader(parseGoLayout(format.format), zone, format.timezone !== undefined);
  switch (name) {
    case 'rfc3339':
    case 'rfc3339nano':
      return isoReader(zone);
    case 'common':
      return layoutReader(parseGoLayout('02/Jan/2006:15:04:05 -0700'), zone, true);
    case 'stamp':
      return layoutReader(parseGoLayout('Jan _2 15:04:05'), zone, true);
    case 'unix':
      return readUnixSeconds;
  }
}

/** The message about a problem with a format or its zone, or undefined. */
export function timestampProblem(format: TimestampFormat): string | undefined {
  try {
    compileTimestamp(format, 'UTC');
    return undefined;
  } catch (error) {
    if (error instanceof LogstrataError) return error.message;
    throw error;
  }
}

/** Whether texts of a format contain their year. */
function hasYear({ format }: TimestampFormat): boolean {
  const name = format.toLowerCase();
  return isTimestampFormatName(name) ? name !== 'stamp' : parseGoLayout(format).parts.has('year');
}

/** Whether texts of a format are wall times, for which a zone must be known. */
export function lacksZone({ format }: TimestampFormat): boolean {
  const name = format.toLowerCase();
  return isTimestampFormatName(name) ? name === 'stamp' : !parseGoLayout(format).parts.has('zone');
}

/** Whether texts of a format have a date without its year. */
export function lacksYear(format: TimestampFormat): boolean {
  const name = format.format.toLowerCase();
  return !hasYear(format) && (isTimestampFormatName(name) || hasDate(parseGoLayout(format.format).parts));
}

/** Whether a field's texts lack the year or the date. */
export function isUndated(format: TimestampFormat | undefined): boolean {
  return format !== undefined && !hasYear(format);
}

function hasDate(parts: GoLayout['parts']): boolean {
  return parts.has('month') || parts.has('day of the year');
}

function isoReader(zone: Zone): TimestampReader {
  const parts = new TimeParts();
  return (text) => (readIsoTime(text, parts) ? instantInYear(parts, parts.year, zone) : null);
}

function layoutReader(layout: GoLayout, zone: Zone, zoneIsGiven: boolean): TimestampReader {
  const parts = new TimeParts();
  const isDated = hasDate(layout.parts);
  return (text, writtenMs, year) => {
    if (!readByLayout(layout, text, parts)) return null;
    if (parts.zoneSource === ZoneSource.abbreviation && !zoneIsGiven) return null;
    if (parts.halfDay === 2 && parts.hour < 12) parts.hour += 12;
    else if (parts.halfDay === 1 && parts.hour === 12) parts.hour = 0;
    if (parts.year >= 0) return instantInYear(parts, parts.year, zone);
    if (!isDated) return latestDay(parts, zone, writtenMs);
    return typeof year === 'number'
      ? instantInYear(parts, year, zone)
      : latestYear(parts, zone, writtenMs, year);
  };
}

/** The instant of the parts in a year; null where the year has no such day. */
function instantInYear(parts: TimeParts, year: number, zone: Zone): number | null {
  if (parts.dayOfYear > 0) {
    if (parts.dayOfYear > (isLeapYear(year) ? 366 : 365)) return null;
    if (parts.month > 0 && !isDayOf(parts, year, daysIn(parts, year))) return null;
  } else {
    const month = parts.month < 0 ? 1 : parts.month;
    const day = parts.day < 0 ? 1 : parts.day;
    if (day < 1 || day > daysInMonth(year, month)) return null;
  }
  return instantOfDay(parts, daysIn(parts, year), zone);
}

/** Days from the epoch to the day of the parts in a year. A day that does not exist continues into the next month. */
function daysIn({ dayOfYear, month, day }: TimeParts, year: number): number {
  if (dayOfYear > 0) return daysOf(year, 1, 1) + dayOfYear - 1;
  return daysOf(year, month < 0 ? 1 : month, day < 0 ? 1 : day);
}

/** Whether month and day, where given in addition to the day of the year, agree with it. */
function isDayOf(parts: TimeParts, year: number, days: number): boolean {
  const first = daysOf(year, parts.month, 1);
  if (parts.day < 0) return days >= first && days < first + daysInMonth(year, parts.month);
  return days === first + parts.day - 1 && parts.day <= daysInMonth(year, parts.month);
}

function instantOfDay(parts: TimeParts, days: number, zone: Zone): number {
  const ofDayMs = ((parts.hour * 60 + parts.minute) * 60 + parts.second) * 1000 + parts.millisecond;
  const wallMs = days * dayMs + ofDayMs;
  return parts.zoneSource === ZoneSource.offset
    ? wallMs - parts.offsetSeconds * 1000
    : zone.instantOf(wallMs);
}

/**
 * The instant in the latest possible year, or `yearsBack` years earlier; where that year has no such day, in the last year
 * before it that has.
 */
function latestYear(
  parts: TimeParts,
  zone: Zone,
  writtenMs: number,
  yearsBack: (latestMs: number) => number = () => 0,
): number | null {
  const limitMs = writtenMs + aheadMsMax.withoutYear;
  let year = yearOfDays(Math.floor((limitMs + dayMs) / dayMs));
  if (lastInstant(parts, year, zone) === null) return null;
  let latestMs = instantOfDay(parts, daysIn(parts, year), zone);
  for (; latestMs > limitMs; latestMs = instantOfDay(parts, daysIn(parts, year), zone)) year--;
  return lastInstant(parts, year - yearsBack(latestMs), zone);
}

/** The instant in `year`, or in the last year before it that has such a day. */
function lastInstant(parts: TimeParts, year: number, zone: Zone): number | null {
  for (let tries = 0; tries <= leapYearsApartMax; tries++) {
    const instantMs = instantInYear(parts, year - tries, zone);
    if (instantMs !== null) return instantMs;
  }
  return null;
}

function latestDay(parts: TimeParts, zone: Zone, writtenMs: number): number | null {
  const limitMs = writtenMs + aheadMsMax.withoutDate;
  const latest = Math.floor(limitMs / dayMs) + 1;
  for (let days = latest; days >= latest - 3; days--) {
    const instantMs = instantOfDay(parts, days, zone);
    if (instantMs <= limitMs) return instantMs;
  }
  return null;
}

function isLeapYear(year: number): boolean {
  return (year & 3) === 0 && (year % 100 !== 0 || year % 400 === 0);
}

const monthDays = Int32Array.of(0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31);

function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : monthDays[month]!;
}

/** Days from the epoch to a day of the proleptic Gregorian calendar. Years are counted from March, so that the leap day is the last day. */
function daysOf(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const monthFromMarch = month > 2 ? month - 3 : month + 9;
  const dayOfYear = (((153 * monthFromMarch + 2) / 5) | 0) + day - 1;
  return era * 146_097 + yearOfEra * 365 + (yearOfEra >> 2) - ((yearOfEra / 100) | 0) + dayOfYear - 719_468;
}

/** The year that contains a day; the estimate is off by at most one. */
function yearOfDays(days: number): number {
  const year = Math.floor(days / 365.2425) + 1970;
  if (daysOf(year, 1, 1) > days) return year - 1;
  return daysOf(year + 1, 1, 1) <= days ? year + 1 : year;
}

const unixPattern = /^([+-]?)(\d{1,12})(?:\.(\d*))?$/;
const scientificPattern = /^[+-]?\d+(?:\.\d+)?[eE][+-]?\d{1,3}$/;

/** Reads seconds since the epoch with an optional fraction, or a JSON number with an exponent. */
function readUnixSeconds(text: string): number | null {
  const match = unixPattern.exec(text);
  if (match === null) {
    const seconds = scientificPattern.test(text) ? Number(text) : NaN;
    return Math.abs(seconds) < unixSecondsMax ? Math.floor(seconds * 1000) : null;
  }
  const seconds = Number(match[2]);
  if (seconds >= unixSecondsMax) return null;
  const fraction = match[3] ?? '';
  const milliseconds = fraction === '' ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const timeMs = seconds * 1000 + milliseconds;
  if (match[1] !== '-') return timeMs;
  const cutOff = fraction.length > 3 && /[1-9]/.test(fraction.slice(3)) ? 1 : 0;
  return 0 - timeMs - cutOff;
}

/** How texts are read as times. */
export interface TimestampFormat {
  /** A name of `timestampFormatNames` in lower case, or a Go layout. */
  readonly format: string;
  /** IANA name, `UTC`, `Local` or an offset, for texts that have none. If absent, the server's zone. */
  readonly timezone?: string;
}

/** When lines were written; used to complete times without a year. */
export interface Written {
  /** Latest possible time, in milliseconds: now for lines that have just come, the file's modification time for lines of a file. */
  readonly byMs: number;
  /**
   * For lines of a file that is read in order: by field with undated times, the state of year counting before these lines,
   * where years are counted.
   */
  readonly years?: readonly (YearPlace | undefined)[] | undefined;
}

/** State of year counting for one field between two lines of a file. Times are those in the latest possible year. */
export interface YearPlace {
  /** The first time that was seen; null for none. */
  readonly firstMs: number | null;
  /** The time of the previous line; null for none. */
  readonly lastMs: number | null;
  /** Number of years that the following lines are before the latest possible year. */
  readonly yearsBack: number;
  /** Whether the lines are in chronological order, as in a log. */
  readonly isOrdered: boolean;
}

/** State before the first line of a file whose lines are all within one year. */
export const yearsBegin: YearPlace = { firstMs: null, lastMs: null, yearsBack: 0, isOrdered: true };
const yearMs = 365.2425 * dayMs;

/** How much older a line in a log may be than a line before it. */
const latenessMsMax = 30 * dayMs;

/** The latest time at which a line was written, in milliseconds, as precisely as a single time can tell. */
export function latestOf({ byMs, years }: Written): number {
  return Math.round(byMs - Math.max(0, years?.[0]?.yearsBack ?? 0) * yearMs);
}

/**
 * Joins the states of two consecutive ranges of lines: `place` is the state after the first range, `next` the state after the
 * second, counted as if the second range began the file. Returns the state after both.
 *
 * With times in the latest possible year, the times of a file that was filled within one year ascend to its end. A fall by
 * more than half a year means that a year ended there, and that the lines before were written a year earlier. A rise by nearly
 * a year after that is a late line of the year before. A fall of more than `latenessMsMax` and at most half a year does not
 * occur in a log: the lines are not in order then, and years can't be counted.
 */
export function placeBehind(place: YearPlace, next: YearPlace): YearPlace {
  const { firstMs, lastMs } = next;
  const fall = place.lastMs === null || firstMs === null ? 0 : place.lastMs - firstMs;
  const turn = fall > yearMs / 2 ? -1 : fall < latenessMsMax - yearMs ? 1 : 0;
  return {
    firstMs: place.firstMs ?? firstMs,
    lastMs: lastMs ?? place.lastMs,
    yearsBack: place.yearsBack + turn + next.yearsBack,
    isOrdered: place.isOrdered && next.isOrdered && (turn === -1 || fall <= latenessMsMax),
  };
}

/** Counts the years of one field along a file, from a given state on. */
export class YearWalk {
  constructor(public place: YearPlace) {}

  /** Takes the next line. Returns how many years before the latest possible year it was written. */
  step(latestMs: number): number {
    this.place = placeBehind(this.place, { ...yearsBegin, firstMs: latestMs, lastMs: latestMs });
    return Math.max(0, this.place.yearsBack);
  }
}
