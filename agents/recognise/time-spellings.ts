import { compileTimestamp, type TimestampFormat, type TimestampReader } from '../times/timestamp.js';

/** A way in which programs write times. */
export interface TimeSpelling {
  /** What a time looks like, as an expression without groups that are kept. */
  readonly shape: string;
  /** How it reads; without `timestamp` it is milliseconds since the epoch. */
  readonly timestamp?: TimestampFormat;
  /** What makes a text of it that reads, where it does not as it stands; the part's name is `time`. */
  readonly template?: string;
}

const clock = String.raw`\d{1,2}:\d{2}:\d{2}`;
const fraction = String.raw`(?:[.,]\d+)?`;
const clock12 = String.raw`\d{1,2}:\d{2}:\d{2} [AaPp][Mm]`;
const month = '[A-Z][a-z]{2}';
const weekday = '[A-Z][a-z]{2}';

/**
 * Abbreviations of zones that are believed where a log has them, and what they mean most often. Others are most likely a word of the
 * log's own, such as INFO.
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

function layout(format: string, shape: string): TimeSpelling {
  return { shape, timestamp: { format } };
}

/** Dates whose parts are numbers, each with the text that stands between date and clock. */
function dated(date: string, shape: string, between: readonly string[]): TimeSpelling[] {
  return between.flatMap((text) => {
    const start = `${shape}${text === '.' ? '\\.' : text}${clock}${fraction}`;
    const format = `${date}${text}15:04:05`;
    return [
      layout(`${format}Z07:00`, `${start}(?:Z|[+-]\\d{2}:\\d{2})`),
      layout(`${format}Z0700`, `${start}[+-]\\d{4}`),
      layout(`${format} -07:00`, `${start} [+-]\\d{2}:\\d{2}`),
      layout(`${format} -0700`, `${start} [+-]\\d{4}`),
      layout(`${format}-07`, `${start}[+-]\\d{2}`),
      layout(`${format} MST`, `${start} ${zone}`),
      layout(format, start),
    ];
  });
}

/** In the order in which they are tried: what says more stands before what says less. */
export const timeSpellings: readonly TimeSpelling[] = [
  layout('rfc3339', String.raw`\d{4}-\d{2}-\d{2}[Tt ]${clock}${fraction}(?:[Zz]|[+-]\d{2}:\d{2})`),
  ...dated('2006-01-02', String.raw`\d{4}-\d{2}-\d{2}`, ['T', ' ', '_', '-', '.']),
  layout('2006-01-02-15.04.05', String.raw`\d{4}-\d{2}-\d{2}-\d{2}\.\d{2}\.\d{2}${fraction}`),
  ...dated('2006/01/02', String.raw`\d{4}/\d{2}/\d{2}`, [' ', '-', 'T']),
  ...dated('2006.01.02', String.raw`\d{4}\.\d{2}\.\d{2}`, [' ', '-']),
  ...dated('20060102', String.raw`(?:19|20)\d{6}`, [' ', '-', 'T', '_']),
  layout('20060102-15:4:5', String.raw`(?:19|20)\d{6}-\d{1,2}:\d{1,2}:\d{1,2}`),
  layout('common', String.raw`\d{2}/${month}/\d{4}:${clock}${fraction} [+-]\d{4}`),
  ...dated('02/Jan/2006', String.raw`\d{2}/${month}/\d{4}`, [':', ' ']),
  ...dated('02-Jan-2006', String.raw`\d{1,2}-${month}-\d{4}`, [' ']),
  ...dated('_2 Jan 2006', String.raw`[ \d]?\d ${month} \d{4}`, [' ']),
  layout('Mon, 02 Jan 2006 15:04:05 -0700', `${weekday}, \\d{2} ${month} \\d{4} ${clock} [+-]\\d{4}`),
  layout('Mon, 02 Jan 2006 15:04:05 MST', `${weekday}, \\d{2} ${month} \\d{4} ${clock} ${zone}`),
  layout('Mon Jan _2 15:04:05 MST 2006', `${weekday} ${month} [ \\d]\\d ${clock} ${zone} \\d{4}`),
  layout('Mon Jan _2 15:04:05 -0700 2006', `${weekday} ${month} [ \\d]\\d ${clock} [+-]\\d{4} \\d{4}`),
  layout('Mon Jan _2 15:04:05 2006', `${weekday} ${month} [ \\d]?\\d ${clock}${fraction} \\d{4}`),
  layout('Mon _2 Jan 2006 15:04:05 MST', `${weekday} [ \\d]?\\d ${month} \\d{4} ${clock} ${zone}`),
  layout('Jan _2, 2006 3:04:05 PM', `${month} [ \\d]?\\d, \\d{4} ${clock12}`),
  layout('Jan _2, 2006 15:04:05', `${month} [ \\d]?\\d, \\d{4} ${clock}${fraction}`),
  layout('Jan _2 2006 15:04:05', `${month} [ \\d]?\\d \\d{4} ${clock}${fraction}`),
  layout('Jan _2 15:04:05 2006', `${month} [ \\d]?\\d ${clock}${fraction} \\d{4}`),
  layout('stamp', `${month} [ \\d]?\\d ${clock}${fraction}`),
  layout('1/2/2006, 3:04:05 PM', String.raw`\d{1,2}/\d{1,2}/\d{4}, ${clock12}`),
  layout('1/2/2006 3:04:05 PM', String.raw`\d{1,2}/\d{1,2}/\d{4} ${clock12}`),
  ...dated('02.01.2006', String.raw`\d{2}\.\d{2}\.\d{4}`, [' ']),
  ...dated('02/01/2006', String.raw`\d{2}/\d{2}/\d{4}`, [' ', '-']),
  ...dated('01/02/2006', String.raw`\d{2}/\d{2}/\d{4}`, [' ', '-']),
  ...dated('02-01-2006', String.raw`\d{2}-\d{2}-\d{4}`, [' ']),
  ...dated('06/01/02', String.raw`\d{2}/\d{2}/\d{2}`, [' ']),
  ...dated('01/02/06', String.raw`\d{2}/\d{2}/\d{2}`, [' ']),
  ...dated('060102', String.raw`\d{6}`, [' ']),
  layout('060102 150405', String.raw`\d{6} \d{6}${fraction}`),
  layout('20060102 150405', String.raw`(?:19|20)\d{6} \d{6}${fraction}`),
  layout('20060102150405', String.raw`20\d{12}${fraction}`),
  ...dated('01-02', String.raw`\d{2}-\d{2}`, [' ']).slice(-1),
  ...dated('01/02', String.raw`\d{2}/\d{2}`, [' ']).slice(-1),
  ...dated('01.02', String.raw`\d{2}\.\d{2}`, [' ']).slice(-1),
  ...dated('0102', String.raw`\d{4}`, [' ']).slice(-1),
  { shape: String.raw`1\d{18}`, template: '{{slice .time 0 13}}' },
  { shape: String.raw`1\d{15}`, template: '{{slice .time 0 13}}' },
  { shape: String.raw`(?:9\d{11}|1\d{12})` },
  layout('unix', String.raw`(?:9\d{8}|1\d{9})${fraction.replace(',', '')}`),
  layout('15:04:05', clock + fraction),
  layout('3:04PM', String.raw`\d{1,2}:\d{2}[AP]M`),
];

/** How a column of times reads. */
export interface TimeReading {
  readonly timestamp?: TimestampFormat;
  readonly template?: string;
}

/** Texts that have to read for a spelling to be believed: some logs have a time that is none, such as 0000-00-00. */
const readShareMin = 0.9;

/**
 * How `texts` read as times: the spelling that reads the most of them, of several that read as many the one whose times lie nearest
 * together. Undefined where none reads nearly all.
 *
 * @param writtenMs for spellings without a year
 */
export function readingOf(
  texts: readonly string[],
  writtenMs: number,
  spellings: readonly TimeSpelling[] = timeSpellings,
): TimeReading | undefined {
  let best: { readonly reading: TimeReading; readonly read: number; readonly spanMs: number } | undefined;
  for (const spelling of spellings) {
    const reading = { ...withZone(spelling, texts) };
    const { read, spanMs } = readAll(readerOf(reading), texts, writtenMs);
    if (read === 0 || read < texts.length * readShareMin) continue;
    if (best === undefined || read > best.read || (read === best.read && spanMs < best.spanMs / 2))
      best = { reading, read, spanMs };
  }
  return best?.reading;
}

/** With the zone that the texts' abbreviation means, where they have one. */
function withZone({ timestamp, template }: TimeSpelling, texts: readonly string[]): TimeReading {
  if (timestamp === undefined) return template === undefined ? {} : { template };
  if (!timestamp.format.includes('MST')) return { timestamp };
  const names = new Set(texts.flatMap((text) => /[A-Z]{3,5}/.exec(text.slice(8))?.[0] ?? []));
  const timezone = [...names].flatMap((name) => zones.get(name) ?? [])[0];
  return { timestamp: timezone === undefined || timezone === 'UTC' ? timestamp : { ...timestamp, timezone } };
}

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
