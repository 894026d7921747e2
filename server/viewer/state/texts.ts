const grouped = new Intl.NumberFormat('en-US');

/** A count with separators: `12,345,678`. */
export function countText(count: number): string {
  return grouped.format(count);
}

const steps: readonly (readonly [number, string])[] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** A count of at most three digits with a unit: `1.2 M`. */
export function shortCountText(count: number): string {
  for (const [size, unit] of steps) {
    if (count < size) continue;
    const scaled = count / size;
    return `${scaled < 10 ? scaled.toFixed(1).replace('.0', '') : Math.round(scaled)} ${unit}`;
  }
  return String(count);
}

const significant = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 6 });

/** A number of the line: six digits, or all of an integer that came as a text. */
export function numberText(value: number | string): string {
  return typeof value === 'string' ? value : significant.format(value);
}

/** A count of records: `1 record`, `2 records`. */
export function recordsText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'record' : 'records'}`;
}

/** A part of a text, and whether it matches the search. */
export interface TextPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** What is marked in a text: the matches of an expression with the flag `g` in its first characters. */
export interface Needle {
  readonly expression: RegExp;
  readonly charsMax: number;
}

/** Marks a text, regardless of case. */
export function textNeedle(text: string): Needle {
  return {
    expression: new RegExp(text.replaceAll(/[\^$\\.*+?()[\]{}|/]/g, '\\$&'), 'giu'),
    charsMax: Infinity,
  };
}

/** Maximum number of matches of a needle that are marked in a text. A search for one letter may match most of a long text. */
const matchesMax = 200;

/** Splits a text at the matches of needles. */
export function markMatches(text: string, needles: readonly Needle[]): readonly TextPart[] {
  const ranges = needles.flatMap(({ expression, charsMax }) => {
    const found: (readonly [from: number, until: number])[] = [];
    for (const { index, 0: match } of text.slice(0, charsMax).matchAll(expression))
      if (found.push([index, index + match.length]) === matchesMax) break;
    return found;
  });
  const parts: TextPart[] = [];
  let end = 0;
  for (const [from, until] of ranges.sort(([one], [other]) => one - other)) {
    if (until <= Math.max(end, from)) continue;
    if (from > end) parts.push({ text: text.slice(end, from), isMatch: false });
    parts.push({ text: text.slice(Math.max(end, from), until), isMatch: true });
    end = until;
  }
  if (end < text.length) parts.push({ text: text.slice(end), isMatch: false });
  return parts;
}

/** The zone that times are shown in: that of the browser, or UTC. */
export type Zone = 'local' | 'utc';

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');

/** Whether a time is within the range of Date. */
export function isShownTime(timeMs: number): boolean {
  return Math.abs(timeMs) <= 8.64e15;
}

interface Clock {
  readonly day: string;
  readonly time: string;
  readonly milliseconds: string;
}

function clockOf(timeMs: number, zone: Zone): Clock {
  const date = new Date(timeMs);
  // The time is shifted by its offset, so that the UTC getters give local time.
  const shown = zone === 'utc' ? date : new Date(timeMs - date.getTimezoneOffset() * 60_000);
  return {
    day: `${pad(shown.getUTCFullYear(), 4)}-${pad(shown.getUTCMonth() + 1)}-${pad(shown.getUTCDate())}`,
    time: `${pad(shown.getUTCHours())}:${pad(shown.getUTCMinutes())}:${pad(shown.getUTCSeconds())}`,
    milliseconds: pad(shown.getUTCMilliseconds(), 3),
  };
}

/** A time such as `2026-11-18 10:00:00.123`. A number outside the range of Date is shown unchanged. */
export function timeText(timeMs: number, zone: Zone): string {
  if (!isShownTime(timeMs)) return String(timeMs);
  const { day, time, milliseconds } = clockOf(timeMs, zone);
  return `${day} ${time}.${milliseconds}`;
}

/** A time such as `2026-11-18 10:00:00`, or `2026-11-18 10:00` where the seconds are 0. */
export function shortTimeText(timeMs: number, zone: Zone): string {
  const { day, time } = clockOf(timeMs, zone);
  return `${day} ${time.endsWith(':00') ? time.slice(0, 5) : time}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Labels of ticks along a time axis, as short as possible: `10:30`, and `18 Nov` where a day begins. */
export function tickTexts(timesMs: readonly number[], zone: Zone): readonly string[] {
  let before = '';
  return timesMs.map((timeMs) => {
    const { day, time } = clockOf(timeMs, zone);
    const date = `${Number(day.slice(8))} ${months[Number(day.slice(5, 7)) - 1]}`;
    const isNewYear = before !== '' && before.slice(0, 4) !== day.slice(0, 4);
    const isNewDay = before !== '' && before !== day;
    before = day;
    if (isNewYear) return day.slice(0, 4);
    if (time === '00:00:00' || (isNewDay && timesMs.length > 1 && timesMs[1]! - timesMs[0]! >= 86_400_000))
      return date;
    return time.endsWith(':00') ? time.slice(0, 5) : time;
  });
}

/** The name of the zone, such as `UTC` or `Europe/Oslo`. */
export function zoneName(zone: Zone): string {
  return zone === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const form = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:[.](\d{1,3}))?)?)?$/;

/**
 * Parses a time of the zone in the form in which times are shown: a date, optionally with hours and minutes, seconds, and a fraction of a
 * second. Also accepts milliseconds since the epoch. Undefined for anything else, and for dates that do not exist.
 */
export function readTime(text: string, zone: Zone): number | undefined {
  const trimmed = text.trim();
  if (/^\d{11,16}$/.test(trimmed)) return Number(trimmed);
  const found = form.exec(trimmed);
  if (found === null) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? '0'));
  const fraction = Number((found[7] ?? '0').padEnd(3, '0'));
  const parts = [year!, month! - 1, day!, hour!, minute!, second!, fraction] as const;
  const timeMs = zone === 'utc' ? Date.UTC(...parts) : new Date(...parts).getTime();
  const [writtenDay] = trimmed.split(/[ T]/);
  return clockOf(timeMs, zone).day === writtenDay && hour! < 24 && minute! < 60 && second! < 60
    ? timeMs
    : undefined;
}

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
];

/** A duration in its two largest units: `1d 2h`, `15m`, `300ms`. */
export function durationText(lengthMs: number): string {
  if (lengthMs < 1000) return `${Math.round(lengthMs)}ms`;
  const parts: string[] = [];
  let rest = lengthMs;
  for (const [unit, unitMs] of units) {
    const count = Math.floor(rest / unitMs);
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`);
    rest -= count * unitMs;
  }
  return parts.join(' ');
}

/** Parses a duration such as `90s`, `15m`, `12h`, `7d` or a combination to milliseconds; undefined for anything else. */
export function readDuration(text: string): number | undefined {
  const compact = text.replaceAll(' ', '').toLowerCase();
  if (!/^(?:\d{1,9}[smhd]){1,8}$/.test(compact)) return undefined;
  let sumMs = 0;
  for (const [, count, unit] of compact.matchAll(/(\d{1,9})([smhd])/g))
    sumMs += Number(count) * units.find(([name]) => name === unit)![1];
  return sumMs > 0 ? sumMs : undefined;
}
