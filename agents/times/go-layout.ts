import { LogstrataError } from '../../engine/index.js';

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
export const Step = {
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
