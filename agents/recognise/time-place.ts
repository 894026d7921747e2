import {
  compileTimestamp,
  type TimestampFormat,
  type TimestampReader,
} from '../../engine/times/timestamp.js';
import { zoneProblem } from '../../engine/times/zone.js';
import { LinePattern } from '../definition/line-pattern.js';

/** A spelling of times that programs use. */
interface TimeSpelling {
  /** Expression of a time, without capturing groups. */
  readonly shape: string;
  /** Expression of its beginning, where other spellings begin in the same way: a text without it needs no test for any of these. */
  readonly date?: string;
  /** Whether the text ends with the name of a zone, such as Europe/Berlin, which the format must then end with too. */
  readonly isNamedZone?: boolean;
  /** How to read it; without `timestamp` it is milliseconds since the epoch. */
  readonly timestamp?: TimestampFormat;
  /** Template that makes a readable text of it, where it is not readable as it is; the part's name is `time`. */
  readonly template?: string;
}

const clock = String.raw`\d{1,2}:\d{2}:\d{2}`;
const fraction = String.raw`(?:[.,]\d+)?`;
const halfDay = '[AaPp][Mm]';
/** The blank before AM and PM; newer releases of Java write the narrow no-break one. */
const halfDayBlanks = [' ', '\u202f'] as const;
const month = '[A-Z][a-z]{2}';
const weekday = '[A-Z][a-z]{2}';

/**
 * Abbreviations of zones that are accepted in logs, with their most frequent meaning. Other words after a time are most
 * likely part of the log line, such as INFO.
 */
const zones: ReadonlyMap<string, string> = new Map([
  ['UTC', 'UTC'],
  ['GMT', 'UTC'],
  ['CET', 'Europe/Berlin'],
  ['CEST', 'Europe/Berlin'],
  ['EET', 'Europe/Helsinki'],
  ['EEST', 'Europe/Helsinki'],
  ['WET', 'Europe/Lisbon'],
  ['WEST', 'Europe/Lisbon'],
  ['BST', 'Europe/London'],
  ['MSK', 'Europe/Moscow'],
  ['EST', 'America/New_York'],
  ['EDT', 'America/New_York'],
  ['CST', 'America/Chicago'],
  ['CDT', 'America/Chicago'],
  ['MST', 'America/Denver'],
  ['MDT', 'America/Denver'],
  ['PST', 'America/Los_Angeles'],
  ['PDT', 'America/Los_Angeles'],
  ['JST', 'Asia/Tokyo'],
  ['KST', 'Asia/Seoul'],
  ['AEST', 'Australia/Sydney'],
  ['AEDT', 'Australia/Sydney'],
]);
const zone = `(?:${[...zones.keys()].join('|')})`;
const zoneName = String.raw`[A-Z][A-Za-z]+/[A-Z][A-Za-z_/-]+`;
const minutes = String.raw`\d{1,2}:\d{2}`;

/** Formats without a day. */
const clockFormat = '15:04:05';
const kitchenFormat = '3:04PM';

/** Whether a reading gives only a time of day, without a day. */
export function isDayless({ timestamp }: TimeReading): boolean {
  return timestamp?.format === clockFormat || timestamp?.format === kitchenFormat;
}

function layout(format: string, shape: string): TimeSpelling {
  return { shape, timestamp: { format } };
}

/** Spellings of a date with each of the texts between date and time of day. More specific ones come first. */
function dated(date: string, shape: string, between: readonly string[]): TimeSpelling[] {
  return between.flatMap((text) => {
    const begin = `${shape}${text.replaceAll(/[.|[\]]/g, '\\$&')}`;
    // A one-digit hour may be padded with a blank.
    const start = `${begin}${text === ' ' ? clock.replace('\\d{1,2}', '[ \\d]?\\d') : clock}${fraction}`;
    const format = `${date}${text}15:04:05`;
    return [
      ...halfDayBlanks.map((blank) =>
        layout(`${date}${text}3:04:05${blank}PM`, `${start}${blank}${halfDay}`),
      ),
      layout(`${format}Z07:00`, `${start}(?:Z|[+-]\\d{2}:\\d{2})`),
      layout(`${format}Z0700`, `${start}[+-]\\d{4}`),
      layout(`${format} -07:00`, `${start} [+-]\\d{2}:\\d{2}`),
      layout(`${format} -0700`, `${start} [+-]\\d{4}`),
      layout(`${format} -07`, `${start} [+-]\\d{2}`),
      layout(`${format}-07`, `${start}[+-]\\d{2}`),
      layout(`${format} MST`, `${start} ${zone}`),
      { ...layout(`${format} `, `${start} ${zoneName}`), isNamedZone: true },
      layout(format, start),
      layout(`${date}${text}3:04 PM`, `${begin}${minutes} ${halfDay}`),
      layout(`${date}${text}15:04`, begin + minutes),
    ].map((spelling) => ({ ...spelling, date: shape }));
  });
}

/** Spellings with the date after the time of day. */
function behindClock(date: string, shape: string): TimeSpelling[] {
  return [' ', ', '].map((text) => layout(`15:04:05${text}${date}`, `${clock}${fraction}${text}${shape}`));
}

/** All spellings in the order in which they are tried: more specific ones come first. */
export const timeSpellings: readonly TimeSpelling[] = [
  layout('rfc3339', String.raw`\d{4}-\d{2}-\d{2}[Tt ]${clock}${fraction}(?:[Zz]|[+-]\d{2}(?::?\d{2})?)`),
  ...dated('2006-01-02', String.raw`\d{4}-\d{2}-\d{2}`, [
    'T',
    ' ',
    '_',
    '-',
    '.',
    ', ',
    ',',
    ';',
    '|',
    '\t',
    '] [',
  ]),
  layout('2006-01-02-15.04.05', String.raw`\d{4}-\d{2}-\d{2}-\d{2}\.\d{2}\.\d{2}${fraction}`),
  ...dated('2006/01/02', String.raw`\d{4}/\d{2}/\d{2}`, [' ', '-', 'T', ', ', ',', '\t']),
  ...dated('2006.01.02', String.raw`\d{4}\.\d{2}\.\d{2}`, [' ', '-']),
  ...dated('20060102', String.raw`(?:19|20)\d{6}`, [' ', '-', 'T', '_']),
  layout('20060102-15:4:5', String.raw`(?:19|20)\d{6}-\d{1,2}:\d{1,2}:\d{1,2}`),
  layout('common', String.raw`\d{2}/${month}/\d{4}:${clock}${fraction} [+-]\d{4}`),
  ...dated('02/Jan/2006', String.raw`\d{2}/${month}/\d{4}`, [':', ' ']),
  ...dated('02-Jan-2006', String.raw`\d{1,2}-${month}-\d{4}`, [' ']),
  ...dated('_2 Jan 2006', String.raw`[ \d]?\d ${month} \d{4}`, [' ', ', ']),
  ...dated('Jan/02/2006', String.raw`[A-Za-z]{3}/\d{2}/\d{4}`, [' ']),
  layout('Mon, 02 Jan 2006 15:04:05 -0700', `${weekday}, \\d{2} ${month} \\d{4} ${clock} [+-]\\d{4}`),
  layout('Mon, 02 Jan 2006 15:04:05 MST', `${weekday}, \\d{2} ${month} \\d{4} ${clock} ${zone}`),
  layout('Mon Jan _2 15:04:05 MST 2006', `${weekday} ${month} [ \\d]\\d ${clock} ${zone} \\d{4}`),
  layout('Mon Jan _2 15:04:05 -0700 2006', `${weekday} ${month} [ \\d]\\d ${clock} [+-]\\d{4} \\d{4}`),
  layout('Mon Jan _2 15:04:05 2006', `${weekday} ${month} [ \\d]?\\d ${clock}${fraction} \\d{4}`),
  layout('Mon _2 Jan 2006 15:04:05 MST', `${weekday} [ \\d]?\\d ${month} \\d{4} ${clock} ${zone}`),
  ...dated('Jan _2, 2006', `${month} [ \\d]?\\d, \\d{4}`, [' ', ', ']),
  layout('Jan _2 2006 15:04:05', `${month} [ \\d]?\\d \\d{4} ${clock}${fraction}`),
  layout('Jan _2 15:04:05 2006', `${month} [ \\d]?\\d ${clock}${fraction} \\d{4}`),
  layout('stamp', `${month} [ \\d]?\\d ${clock}${fraction}`),
  ...dated('02.01.2006', String.raw`\d{2}\.\d{2}\.\d{4}`, [' ', ', ', ',', ';', '\t']),
  ...dated('02/01/2006', String.raw`\d{2}/\d{2}/\d{4}`, [' ', '-', ', ', ',', ';', '\t']),
  ...dated('01/02/2006', String.raw`\d{2}/\d{2}/\d{4}`, [' ', '-', ', ', ',', ';', '\t']),
  ...dated('1/2/2006', String.raw`\d{1,2}/\d{1,2}/\d{4}`, [' ', ', ']),
  ...dated('2/1/2006', String.raw`\d{1,2}/\d{1,2}/\d{4}`, [' ', ', ']),
  ...dated('02-01-2006', String.raw`\d{2}-\d{2}-\d{4}`, [' ']),
  ...dated('02.01.06', String.raw`\d{2}\.\d{2}\.\d{2}`, [' ', ', ']),
  ...dated('1/2/06', String.raw`\d{1,2}/\d{1,2}/\d{2}`, [', ']),
  ...behindClock('2006-01-02', String.raw`\d{4}-\d{2}-\d{2}`),
  ...behindClock('02/01/2006', String.raw`\d{2}/\d{2}/\d{4}`),
  ...behindClock('01/02/2006', String.raw`\d{2}/\d{2}/\d{4}`),
  ...behindClock('02.01.2006', String.raw`\d{2}\.\d{2}\.\d{4}`),
  ...behindClock('02-Jan-2006', `\\d{1,2}-${month}-\\d{4}`),
  ...dated('06/01/02', String.raw`\d{2}/\d{2}/\d{2}`, [' ']),
  ...dated('01/02/06', String.raw`\d{2}/\d{2}/\d{2}`, [' ']),
  ...dated('060102', String.raw`\d{6}`, [' ']),
  layout('20060102T150405Z0700', String.raw`(?:19|20)\d{6}T\d{6}${fraction}(?:Z|[+-]\d{4})`),
  layout('20060102T150405', String.raw`(?:19|20)\d{6}T\d{6}${fraction}`),
  layout('20060102-150405', String.raw`(?:19|20)\d{6}-\d{6}${fraction}`),
  layout('060102 150405', String.raw`\d{6} \d{6}${fraction}`),
  layout('20060102 150405', String.raw`(?:19|20)\d{6} \d{6}${fraction}`),
  layout('20060102150405', String.raw`20\d{12}${fraction}`),
  layout('01-02 15:04:05', String.raw`\d{2}-\d{2} ${clock}${fraction}`),
  layout('01/02 15:04:05', String.raw`\d{2}/\d{2} ${clock}${fraction}`),
  layout('01.02 15:04:05', String.raw`\d{2}\.\d{2} ${clock}${fraction}`),
  layout('0102 15:04:05', String.raw`\d{4} ${clock}${fraction}`),
  { shape: String.raw`1\d{18}`, template: '{{slice .time 0 13}}' },
  { shape: String.raw`1\d{15}`, template: '{{slice .time 0 13}}' },
  { shape: String.raw`(?:9\d{11}|1\d{12})` },
  layout('unix', String.raw`(?:9\d{8}|1\d{9})${fraction.replace(',', '')}`),
  layout(clockFormat, clock + fraction),
  layout(kitchenFormat, String.raw`\d{1,2}:\d{2}[AP]M`),
];

/** How a column of times is read. */
export interface TimeReading {
  readonly timestamp?: TimestampFormat;
  readonly template?: string;
  /** The format with day and month exchanged, where that also reads the texts, so that they do not tell which is right. */
  readonly otherOrder?: string;
}

/** Minimum share of readable texts for a spelling. It is below 1 because some logs have invalid times, such as 0000-00-00. */
const readShareMin = 0.9;

/**
 * How `texts` are read as times: by the spelling that reads the most of them; of several that read as many, by the one whose
 * times are closest together. Undefined where no spelling reads nearly all.
 *
 * @param writtenMs for spellings without a year: when the texts were written
 */
export function readingOf(
  texts: readonly string[],
  writtenMs: number,
  spellings: readonly TimeSpelling[] = timeSpellings,
): TimeReading | undefined {
  let best: { readonly reading: TimeReading; readonly read: number; readonly spanMs: number } | undefined;
  for (const spelling of spellings) {
    const reading = withZone(spelling, texts);
    if (reading === undefined) continue;
    const { read, spanMs } = readAll(readerOf(reading), texts, writtenMs);
    if (read === 0 || read < texts.length * readShareMin) continue;
    if (best === undefined || read > best.read || (read === best.read && spanMs < best.spanMs / 2))
      best = { reading, read, spanMs };
  }
  if (best === undefined) return undefined;
  const { reading, read, spanMs } = best;
  const otherOrder = exchanged(reading);
  if (otherOrder === undefined) return reading;
  const other = readAll(readerOf({ timestamp: otherOrder }), texts, writtenMs);
  const tells = other.read < read || other.spanMs > 2 * spanMs;
  return tells ? reading : { ...reading, otherOrder: otherOrder.format };
}

/** Day and month in digits, followed by a year. */
const dayAndMonth = /(0?)([12])([/-])(0?)([12])(?=\3(?:20)?06)/;

/** A reading's format with day and month exchanged; undefined where these are not both digits. */
function exchanged({ timestamp }: TimeReading): TimestampFormat | undefined {
  if (timestamp === undefined || !dayAndMonth.test(timestamp.format)) return undefined;
  return { ...timestamp, format: timestamp.format.replace(dayAndMonth, '$1$5$3$4$2') };
}

/** Adds the zone that the texts' abbreviation or zone name means, where they have one. Undefined for a name that is not a zone. */
function withZone(
  { timestamp, template, isNamedZone }: TimeSpelling,
  texts: readonly string[],
): TimeReading | undefined {
  if (timestamp === undefined) return template === undefined ? {} : { template };
  if (isNamedZone === true) {
    const timezone = texts.map(lastWord).find((word) => namedZone.test(word));
    if (timezone === undefined || zoneProblem(timezone) !== undefined) return undefined;
    return { timestamp: { format: timestamp.format + timezone, timezone } };
  }
  if (!timestamp.format.includes('MST')) return { timestamp };
  const names = new Set(texts.flatMap((text) => /[A-Z]{3,5}/.exec(text.slice(8))?.[0] ?? []));
  const timezone = [...names].flatMap((name) => zones.get(name) ?? [])[0];
  return { timestamp: timezone === undefined || timezone === 'UTC' ? timestamp : { ...timestamp, timezone } };
}

function lastWord(text: string): string {
  return text.slice(text.lastIndexOf(' ') + 1);
}

const namedZone = new RegExp(`^${zoneName}$`);

function readerOf({ timestamp, template }: TimeReading): TimestampReader {
  if (timestamp !== undefined) return compileTimestamp(timestamp, 'UTC');
  const digits = template === undefined ? /^(?:9\d{11}|1\d{12})$/ : /^1(?:\d{18}|\d{15})$/;
  return (text) => (digits.test(text) ? Number(text.slice(0, 13)) : null);
}

function readAll(
  reader: TimestampReader,
  texts: readonly string[],
  writtenMs: number,
): { readonly read: number; readonly spanMs: number } {
  let read = 0;
  let earliest = Infinity;
  let latest = -Infinity;
  for (const text of texts) {
    const timeMs = reader(text.trim(), writtenMs);
    if (timeMs === null) continue;
    read++;
    earliest = Math.min(earliest, timeMs);
    latest = Math.max(latest, timeMs);
  }
  return { read, spanMs: latest - earliest };
}

/** Limit on the words before the time. */
const wordsBeforeMax = 6;

/** Minimum number of lines that begin with a time, for the other lines to count as continuations. */
const rareLinesMin = 3;

/** Limit on the lines that are searched for times: each is matched with every spelling. */
const linesSearchedMax = 120;

/** Position and spelling of the time in lines. */
export interface TimePlace {
  /** Number of words before it. */
  readonly words: number;
  /** The bracket before it, or nothing. */
  readonly open: '' | '[' | '(' | '<' | '"';
  readonly spelling: TimeSpelling;
  /** Share of the searched lines that have such a time. */
  readonly share: number;
}

const openers = new Set(['[', '(', '<', '"']);

/** What may follow a time: not a letter or digit, which would be part of it. */
const behind = '(?:[^0-9A-Za-z].*)?$';

/** Spellings with the same beginning, which is matched only once per text. */
interface Family {
  readonly date: LinePattern;
  readonly members: readonly { readonly pattern: LinePattern; readonly order: number }[];
}

let families: readonly Family[] | undefined;

function familiesOf(): readonly Family[] {
  const byDate = new Map<string, { readonly pattern: LinePattern; readonly order: number }[]>();
  timeSpellings.forEach(({ date, shape }, order) => {
    const members = byDate.get(date ?? shape) ?? [];
    byDate.set(date ?? shape, members);
    members.push({ order, pattern: new LinePattern(`^${shape}${behind}`) });
  });
  return [...byDate].map(([date, members]) => ({ date: new LinePattern(`^${date}`), members }));
}

/** A date next to a time of day, which a spelling of the time of day alone would ignore. Does not match IP addresses and versions. */
const dayShape =
  /\d{1,4}([-/])\w{1,3}\1\d{1,4}|(?<![\d.])\d{1,2}\.\d{1,2}\.\d{2,4}(?![.\d])|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b/i;

/** What may continue a time that a spelling leaves out: AM or PM, or a zone. */
const unreadShape = String.raw`(?: ?[AaPp]\.?[Mm]\b| [+-]\d{2}(?::?\d{2})?\b| [A-Z][a-z]+/[A-Z])`;

/** Number of characters around a time in which its other parts are searched. */
const aroundMax = 48;

/** Whether a spelling would read only a part of the texts' time, and so a wrong one. Then it is better to recognise none. */
function leavesOut({ spelling, words, open }: Omit<TimePlace, 'share'>, texts: readonly string[]): boolean {
  const pattern = new LinePattern(`^(?P<time>${spelling.shape})${behind}`);
  const unread = new RegExp(`^${unreadShape}`);
  let read = 0;
  let left = 0;
  for (const text of texts) {
    const rest = behindWords(text, words)?.slice(open.length);
    if (rest === undefined) continue;
    const bytes = Buffer.from(rest);
    if (pattern.match(bytes, 0, bytes.length) !== true) continue;
    read++;
    const after = bytes.subarray(pattern.captures[1]!).toString().slice(0, aroundMax);
    const before = text.slice(0, text.indexOf(rest)).slice(-aroundMax);
    if (unread.test(after)) left++;
    else if (
      isDayless(spelling) &&
      (dayShape.test(before) || /^[\s,;|\]]*\d{1,4}[-/.]\w{1,3}[-/.]\d/.test(after))
    )
      left++;
  }
  return left > read / 2;
}

/**
 * Finds the time in texts: the position nearest to the beginning at which at least `shareMin` of them have one. Undefined
 * where there is none. Only the beginnings of the first words are searched.
 */
export function findTime(texts: readonly string[], shareMin: number): TimePlace | undefined {
  const step = Math.max(1, Math.ceil(texts.length / linesSearchedMax));
  const searched = texts.filter((_text, i) => i % step === 0);
  for (let words = 0; words <= wordsBeforeMax; words++) {
    const found = bestPlace(searched, words);
    if (found !== undefined && found.share >= shareMin) return found;
  }
  return undefined;
}

/**
 * Finds the time at the beginning of the first lines of records, even if these are few of the texts; undefined where hardly
 * any text has one.
 */
export function findRareTime(texts: readonly string[]): TimePlace | undefined {
  const begin = texts.filter((text) => /^[[(<"]?(?:\d|[A-Z][a-z]{2}[ ,/])/.test(text));
  if (begin.length < rareLinesMin) return undefined;
  const found = bestPlace(begin.slice(0, linesSearchedMax), 0);
  return found === undefined || isDayless(found.spelling) || found.share < 0.5 ? undefined : found;
}

function bestPlace(texts: readonly string[], words: number): TimePlace | undefined {
  families ??= familiesOf();
  const votes = new Map<string, { readonly place: Omit<TimePlace, 'share'>; count: number; order: number }>();
  for (const text of texts) {
    const rest = behindWords(text, words);
    if (rest === undefined) continue;
    const open = openers.has(rest[0] ?? '') ? (rest[0] as TimePlace['open']) : '';
    // No time is longer.
    const bytes = Buffer.from(rest.slice(open.length, open.length + 64));
    for (const { date, members } of families) {
      if (date.match(bytes, 0, bytes.length) !== true) continue;
      for (const { pattern, order } of members) {
        if (pattern.match(bytes, 0, bytes.length) !== true) continue;
        const key = `${open}${order}`;
        const vote = votes.get(key);
        if (vote === undefined)
          votes.set(key, { place: { words, open, spelling: timeSpellings[order]! }, count: 1, order });
        else vote.count++;
      }
    }
  }
  const best = [...votes.values()]
    .toSorted((a, b) => b.count - a.count || a.order - b.order)
    .find(({ place }) => !leavesOut(place, texts));
  return best === undefined ? undefined : { ...best.place, share: best.count / texts.length };
}

/** The text after `words` words and the blanks after each. */
function behindWords(text: string, words: number): string | undefined {
  let at = 0;
  for (let word = 0; word < words; word++) {
    const start = at;
    while (at < text.length && !isBlank(text, at)) at++;
    if (at === start || at === text.length) return undefined;
    while (at < text.length && isBlank(text, at)) at++;
  }
  return text.slice(at, at + 80);
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 32 || code === 9;
}
