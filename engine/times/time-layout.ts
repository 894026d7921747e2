import { LogstrataError } from '../core/errors.js';

/**
 * A Go time layout (https://pkg.go.dev/time#pkg-constants, "Layout") as steps for `layout-reader.ts`. A layout is the
 * reference time `Mon Jan 2 15:04:05 MST 2006`, written in the form of the texts to read.
 */
export interface GoLayout {
  /** Each is a member of `Step`, or `Step.literal` plus the code of an expected character. */
  readonly steps: Int32Array;
  /** For `fraction`: the exact number of digits, or 0 for any number including none. */
  readonly digits: Int32Array;
  readonly parts: ReadonlySet<LayoutPart>;
}

export type LayoutPart =
  | 'year'
  | 'month'
  | 'day'
  | 'day of the year'
  | 'weekday'
  | 'hour'
  | 'minute'
  | 'second'
  | 'fraction'
  | 'AM or PM'
  | 'zone';

/** Numbers, because the reader's loop switches on them for each line. */
const Step = {
  /** A run of blanks: at least one, unless the text ends. */
  blanks: 0,
  year4: 1,
  year2: 2,
  monthName: 3,
  monthAbbreviation: 4,
  month2: 5,
  month: 6,
  /** `2` and `_2`: one or two digits, optionally after a blank. */
  day: 7,
  day2: 8,
  dayOfYear: 9,
  weekdayName: 10,
  weekdayAbbreviation: 11,
  /** `15`: one or two digits, 0 to 23. */
  hour24: 12,
  hour12: 13,
  hour12Padded: 14,
  minute: 15,
  minute2: 16,
  /** Seconds also take a fraction that the layout does not mention, as in Go. */
  second: 17,
  second2: 18,
  secondPlain: 19,
  second2Plain: 20,
  fraction: 21,
  halfDay: 22,
  zoneName: 23,
  /** `-0700` and similar; `offsetOrZ…` also accept `Z`. */
  offset: 24,
  offsetColon: 25,
  offsetHour: 26,
  offsetSeconds: 27,
  offsetColonSeconds: 28,
  offsetOrZ: 29,
  offsetOrZColon: 30,
  offsetOrZHour: 31,
  offsetOrZSeconds: 32,
  offsetOrZColonSeconds: 33,
  literal: 1000,
} as const;

type Token = readonly [text: string, step: number, part: LayoutPart];

/** At each position of a layout the first match is taken, so longer tokens come before their prefixes. */
const tokens: readonly Token[] = [
  ['January', Step.monthName, 'month'],
  ['Jan', Step.monthAbbreviation, 'month'],
  ['Monday', Step.weekdayName, 'weekday'],
  ['Mon', Step.weekdayAbbreviation, 'weekday'],
  ['MST', Step.zoneName, 'zone'],
  ['002', Step.dayOfYear, 'day of the year'],
  ['__2', Step.dayOfYear, 'day of the year'],
  ['01', Step.month2, 'month'],
  ['02', Step.day2, 'day'],
  ['03', Step.hour12Padded, 'hour'],
  ['04', Step.minute2, 'minute'],
  ['05', Step.second2, 'second'],
  ['06', Step.year2, 'year'],
  ['15', Step.hour24, 'hour'],
  ['1', Step.month, 'month'],
  ['2006', Step.year4, 'year'],
  ['2', Step.day, 'day'],
  ['_2', Step.day, 'day'],
  ['3', Step.hour12, 'hour'],
  ['4', Step.minute, 'minute'],
  ['5', Step.second, 'second'],
  ['PM', Step.halfDay, 'AM or PM'],
  ['pm', Step.halfDay, 'AM or PM'],
  ['-070000', Step.offsetSeconds, 'zone'],
  ['-07:00:00', Step.offsetColonSeconds, 'zone'],
  ['-0700', Step.offset, 'zone'],
  ['-07:00', Step.offsetColon, 'zone'],
  ['-07', Step.offsetHour, 'zone'],
  ['Z070000', Step.offsetOrZSeconds, 'zone'],
  ['Z07:00:00', Step.offsetOrZColonSeconds, 'zone'],
  ['Z0700', Step.offsetOrZ, 'zone'],
  ['Z07:00', Step.offsetOrZColon, 'zone'],
  ['Z07', Step.offsetOrZHour, 'zone'],
];

/**
 * Parses a layout. Throws `invalid` for a text that is not a useful layout: with less than two parts of a time, with a part
 * twice (as in names of unknown formats), or with a day but no month.
 */
export function parseGoLayout(layout: string): GoLayout {
  const steps: number[] = [];
  const digits: number[] = [];
  const parts = new Set<LayoutPart>();
  let at = 0;
  while (at < layout.length) {
    const fractionLength = fractionLengthAt(layout, at);
    const token = fractionLength === 0 ? tokenAt(layout, at) : undefined;
    const part = fractionLength > 0 ? 'fraction' : token?.[2];
    if (part !== undefined) {
      if (parts.has(part)) throw notALayout(layout, `it has the ${part} twice`);
      parts.add(part);
    }
    if (fractionLength > 0) {
      steps.push(Step.fraction);
      digits.push(layout[at + 1] === '0' ? fractionLength - 1 : 0);
      at += fractionLength;
    } else if (token !== undefined) {
      steps.push(token[1]);
      digits.push(0);
      at += token[0].length;
    } else {
      const blank = layout[at] === ' ';
      if (!blank || steps.at(-1) !== Step.blanks) {
        steps.push(blank ? Step.blanks : Step.literal + layout.charCodeAt(at));
        digits.push(0);
      }
      at++;
    }
  }
  checkParts(layout, parts);
  keepFractionsApart(steps);
  return { steps: Int32Array.from(steps), digits: Int32Array.from(digits), parts };
}

function tokenAt(layout: string, at: number): Token | undefined {
  // "_2006" is an underscore and a year, not a day.
  if (layout.startsWith('_2006', at)) return undefined;
  return tokens.find(([text, step]) => {
    if (!layout.startsWith(text, at)) return false;
    // "Jan" and "Mon" inside a longer word ("Month") are literal text.
    const abbreviation = step === Step.monthAbbreviation || step === Step.weekdayAbbreviation;
    return !abbreviation || !/[a-z]/.test(layout[at + text.length] ?? '');
  });
}

/** Length of `.000`, `,000`, `.999` and the like, including the point; 0 where there is none. */
function fractionLengthAt(layout: string, at: number): number {
  if (layout[at] !== '.' && layout[at] !== ',') return 0;
  const digit = layout[at + 1];
  if (digit !== '0' && digit !== '9') return 0;
  let end = at + 1;
  while (layout[end] === digit) end++;
  return /[0-9]/.test(layout[end] ?? '') ? 0 : end - at;
}

function checkParts(layout: string, parts: ReadonlySet<LayoutPart>): void {
  if (parts.size < 2)
    throw notALayout(
      layout,
      parts.size === 0 ? 'it has no part of a time' : `it has only the ${[...parts][0]}`,
    );
  if (parts.has('day') && !parts.has('month'))
    throw notALayout(layout, 'it has the day without the month (01, 1, Jan or January)');
  const time = ['hour', 'minute', 'second', 'month', 'day of the year'] as const;
  if (!time.some((part) => parts.has(part)))
    throw notALayout(layout, 'it has neither a date nor a time of day');
}

/** Where the layout has a fraction after the seconds, the step for seconds must not take it. */
function keepFractionsApart(steps: number[]): void {
  steps.forEach((step, i) => {
    if (steps[i + 1] !== Step.fraction) return;
    if (step === Step.second) steps[i] = Step.secondPlain;
    if (step === Step.second2) steps[i] = Step.second2Plain;
  });
}

function notALayout(layout: string, reason: string): LogstrataError {
  return new LogstrataError(
    'invalid',
    `unknown time format ${JSON.stringify(layout)}: expected rfc3339, rfc3339nano, common, stamp, unix, ` +
      `or a Go layout such as "02 Jan 2006 15:04:05" (as a layout, ${reason})`,
  );
}

/** Where the zone of a text comes from. */
export const ZoneSource = { none: 0, offset: 1, abbreviation: 2 } as const;

/** The parts of a time text; -1 where the text lacks a part. One object is reused for all texts. */
export class TimeParts {
  year = -1;
  /** 1 to 12. */
  month = -1;
  day = -1;
  dayOfYear = -1;
  hour = 0;
  minute = 0;
  second = 0;
  millisecond = 0;
  /** 0 none, 1 AM, 2 PM. */
  halfDay = 0;
  zoneSource: number = ZoneSource.none;
  /** Valid where `zoneSource` is `offset`. */
  offsetSeconds = 0;
  /** Valid where `zoneSource` is `abbreviation`: an abbreviation without a fixed meaning. */
  abbreviation = '';

  /** Resets all parts. */
  clear(): void {
    this.year = -1;
    this.month = -1;
    this.day = -1;
    this.dayOfYear = -1;
    this.hour = 0;
    this.minute = 0;
    this.second = 0;
    this.millisecond = 0;
    this.halfDay = 0;
    this.zoneSource = ZoneSource.none;
  }
}

/**
 * Reads the whole of `text` by a layout into `parts`; returns false where it does not match. Does not check that the day
 * exists in its month.
 */
export function readByLayout(layout: GoLayout, text: string, parts: TimeParts): boolean {
  parts.clear();
  const steps = layout.steps;
  let at = 0;
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i]!;
    if (step >= Step.literal) {
      if (text.charCodeAt(at) !== step - Step.literal) return false;
      at++;
    } else {
      at =
        step === Step.fraction
          ? readFraction(text, at, layout.digits[i]!, parts)
          : readStep(step, text, at, parts);
      if (at < 0) return false;
    }
  }
  return at === text.length;
}

/** Reads one step. Returns the position after it, or -1. */
function readStep(step: number, text: string, at: number, parts: TimeParts): number {
  switch (step) {
    case Step.blanks:
      return skipBlanks(text, at);
    case Step.year4: {
      const high = twoDigits(text, at);
      const low = twoDigits(text, at + 2);
      parts.year = high * 100 + low;
      return high < 0 || low < 0 ? -1 : at + 4;
    }
    case Step.monthAbbreviation:
      parts.month = monthByLetters(text, at);
      return parts.month < 0 ? -1 : at + 3;
    case Step.month2:
      parts.month = twoDigits(text, at);
      return parts.month < 1 || parts.month > 12 ? -1 : at + 2;
    case Step.day2:
      parts.day = twoDigits(text, at);
      return parts.day < 0 ? -1 : at + 2;
    case Step.day:
      if (text.charCodeAt(at) === 32) at++;
      parts.day = oneOrTwoDigits(text, at);
      return behindNumber(text, at);
    case Step.hour24:
      parts.hour = oneOrTwoDigits(text, at);
      return parts.hour > 23 ? -1 : behindNumber(text, at);
    case Step.minute2:
      parts.minute = twoDigits(text, at);
      return parts.minute < 0 || parts.minute > 59 ? -1 : at + 2;
    case Step.second2:
    case Step.second2Plain:
      parts.second = twoDigits(text, at);
      if (parts.second < 0 || parts.second > 59) return -1;
      return step === Step.second2 ? readFraction(text, at + 2, 0, parts) : at + 2;
    default:
      return step >= Step.offset && step <= Step.offsetOrZColonSeconds
        ? readOffset(step, text, at, parts)
        : readRareStep(step, text, at, parts);
  }
}

function readRareStep(step: number, text: string, at: number, parts: TimeParts): number {
  switch (step) {
    case Step.year2: {
      const year = twoDigits(text, at);
      // The century as in Go and POSIX: 69 to 99 are the 1900s.
      parts.year = year + (year >= 69 ? 1900 : 2000);
      return year < 0 ? -1 : at + 2;
    }
    case Step.monthName:
      return readMonthName(text, at, parts);
    case Step.month:
      parts.month = oneOrTwoDigits(text, at);
      return parts.month < 1 || parts.month > 12 ? -1 : behindNumber(text, at);
    case Step.dayOfYear:
      return readDayOfYear(text, at, parts);
    case Step.weekdayName:
    case Step.weekdayAbbreviation:
      return readWeekday(step, text, at);
    case Step.hour12:
      parts.hour = oneOrTwoDigits(text, at);
      return parts.hour > 12 ? -1 : behindNumber(text, at);
    case Step.hour12Padded:
      parts.hour = twoDigits(text, at);
      return parts.hour < 0 || parts.hour > 12 ? -1 : at + 2;
    case Step.minute:
      parts.minute = oneOrTwoDigits(text, at);
      return parts.minute > 59 ? -1 : behindNumber(text, at);
    case Step.second:
    case Step.secondPlain: {
      parts.second = oneOrTwoDigits(text, at);
      const behind = parts.second > 59 ? -1 : behindNumber(text, at);
      return behind < 0 || step === Step.secondPlain ? behind : readFraction(text, behind, 0, parts);
    }
    case Step.halfDay: {
      const letter = text.charCodeAt(at) | 32;
      parts.halfDay = letter === 97 ? 1 : letter === 112 ? 2 : 0;
      return parts.halfDay === 0 || (text.charCodeAt(at + 1) | 32) !== 109 ? -1 : at + 2;
    }
    case Step.zoneName:
      return readZoneName(text, at, parts);
    default:
      return -1;
  }
}

/** The number of two digits at `at`; -1 where there are none. */
export function twoDigits(text: string, at: number): number {
  const high = text.charCodeAt(at) - 48;
  const low = text.charCodeAt(at + 1) - 48;
  return high >= 0 && high <= 9 && low >= 0 && low <= 9 ? high * 10 + low : -1;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** The number of one or two digits at `at`; -1 where there is none, for which `behindNumber` returns -1 too. */
function oneOrTwoDigits(text: string, at: number): number {
  if (!isDigit(text, at)) return -1;
  const first = text.charCodeAt(at) - 48;
  return isDigit(text, at + 1) ? first * 10 + text.charCodeAt(at + 1) - 48 : first;
}

function behindNumber(text: string, at: number): number {
  if (!isDigit(text, at)) return -1;
  return isDigit(text, at + 1) ? at + 2 : at + 1;
}

function skipBlanks(text: string, at: number): number {
  if (at < text.length && text.charCodeAt(at) !== 32) return -1;
  while (text.charCodeAt(at) === 32) at++;
  return at;
}

/**
 * Reads a point or comma and digits: exactly `digits` if that is positive, otherwise any number, including none. Truncates
 * to milliseconds.
 */
export function readFraction(text: string, at: number, digits: number, parts: TimeParts): number {
  const point = text.charCodeAt(at);
  if ((point !== 46 && point !== 44) || !isDigit(text, at + 1)) return digits > 0 ? -1 : at;
  let end = at + 1;
  let milliseconds = 0;
  let weight = 100;
  while ((digits === 0 || end <= at + digits) && isDigit(text, end)) {
    milliseconds += (text.charCodeAt(end) - 48) * weight;
    weight = weight === 1 ? 0 : weight / 10;
    end++;
  }
  if (digits > 0 && end !== at + digits + 1) return -1;
  parts.millisecond = milliseconds;
  return end;
}

const monthNames = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
];
const weekdayNames = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

/** Three letters, in lower case, as one number. */
function letters(text: string, at: number): number {
  return (
    ((text.charCodeAt(at) | 32) << 16) |
    ((text.charCodeAt(at + 1) | 32) << 8) |
    (text.charCodeAt(at + 2) | 32)
  );
}

const months = new Map(monthNames.map((name, i) => [letters(name, 0), i + 1]));
const weekdays = new Map(weekdayNames.map((name, i) => [letters(name, 0), i]));

/** The month of an English abbreviation in any case; -1 for another text. */
function monthByLetters(text: string, at: number): number {
  return months.get(letters(text, at)) ?? -1;
}

function readMonthName(text: string, at: number, parts: TimeParts): number {
  parts.month = monthByLetters(text, at);
  if (parts.month < 0) return -1;
  const name = monthNames[parts.month - 1]!;
  return text.slice(at, at + name.length).toLowerCase() === name ? at + name.length : -1;
}

/** Reads the name of a weekday. As in Go, it need not be the weekday of the date. */
function readWeekday(step: number, text: string, at: number): number {
  const weekday = weekdays.get(letters(text, at));
  if (weekday === undefined) return -1;
  if (step === Step.weekdayAbbreviation) return at + 3;
  const name = weekdayNames[weekday]!;
  return text.slice(at, at + name.length).toLowerCase() === name ? at + name.length : -1;
}

/** Reads three characters: digits, of which leading ones may be blanks. */
function readDayOfYear(text: string, at: number, parts: TimeParts): number {
  const digits = text.slice(at, at + 3);
  if (!/^ {0,2}\d+$/.test(digits) || digits.length < 3) return -1;
  parts.dayOfYear = Number(digits);
  return parts.dayOfYear < 1 || parts.dayOfYear > 366 ? -1 : at + 3;
}

function readOffset(step: number, text: string, at: number, parts: TimeParts): number {
  const sign = text.charCodeAt(at);
  if (step >= Step.offsetOrZ && (sign | 32) === 122) {
    parts.zoneSource = ZoneSource.offset;
    parts.offsetSeconds = 0;
    return at + 1;
  }
  if (sign !== 43 && sign !== 45) return -1;
  const shape = step >= Step.offsetOrZ ? step - (Step.offsetOrZ - Step.offset) : step;
  const colon = shape === Step.offsetColon || shape === Step.offsetColonSeconds ? 1 : 0;
  const hours = twoDigits(text, at + 1);
  let end = at + 3;
  let minutes = 0;
  let seconds = 0;
  if (shape !== Step.offsetHour) {
    if (colon === 1 && text.charCodeAt(end) !== 58) return -1;
    minutes = twoDigits(text, end + colon);
    end += 2 + colon;
  }
  if (shape === Step.offsetSeconds || shape === Step.offsetColonSeconds) {
    if (colon === 1 && text.charCodeAt(end) !== 58) return -1;
    seconds = twoDigits(text, end + colon);
    end += 2 + colon;
  }
  if (hours < 0 || hours > 24 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59) return -1;
  const total = hours * 3600 + minutes * 60 + seconds;
  parts.zoneSource = ZoneSource.offset;
  parts.offsetSeconds = sign === 45 ? -total : total;
  return end;
}

/** Abbreviations that always mean UTC; the meaning of others depends on the region. */
const utcNames = new Set(['UTC', 'GMT', 'UT', 'Z']);

/** Reads `CET`, `GMT+3` or `+03`: capital letters, an offset in hours, or both after GMT or UTC. */
function readZoneName(text: string, at: number, parts: TimeParts): number {
  let end = at;
  while (end - at < 5 && text.charCodeAt(end) >= 65 && text.charCodeAt(end) <= 90) end++;
  const name = text.slice(at, end);
  const sign = text.charCodeAt(end);
  if ((name === '' || name === 'GMT' || name === 'UTC') && (sign === 43 || sign === 45)) {
    const hours = oneOrTwoDigits(text, end + 1);
    if (hours < 0 || hours > 23) return -1;
    parts.zoneSource = ZoneSource.offset;
    parts.offsetSeconds = (sign === 45 ? -hours : hours) * 3600;
    return behindNumber(text, end + 1);
  }
  if (name === '') return -1;
  if (utcNames.has(name)) {
    parts.zoneSource = ZoneSource.offset;
    parts.offsetSeconds = 0;
  } else {
    parts.zoneSource = ZoneSource.abbreviation;
    parts.abbreviation = name;
  }
  return end;
}
