import { JsonLineParser } from '../decode/json-decoder.js';
import { logfmtKeys, LogfmtLineParser } from '../decode/line-decoder.js';
import { ParsedLine, type LineParser } from '../decode/parsed-line.js';
import {
  type Candidate,
  type CandidateField,
  type SampleLine,
  FieldNames,
  isInteger,
  typeOfField,
  unlikeFloat,
} from './field-names.js';
import { type KnownKeys, knownKeys, partOf } from './json-dialects.js';
import { jsonPaths } from './json-paths.js';
import { isDayless, readingOf, type TimeReading, timeSpellings } from './time-place.js';

/** Limit on the fields that a file lists; the rarest keys are left out. */
const keysMax = 200;

/** Keys that usually hold the time of a record. */
const timeKeys =
  /^(?:@?time_?stamp|time|ts|@t|t|date_?time|event_?time|log_?time|asctime|time_(?:local|iso8601|unix_nano)|timeunixnano|time_?millis|__realtime_timestamp|\$date|epoch_?second|date|start_?time|request_?time_?iso|created(?:_?at)?)$/i;

/** Keys that may hold a time. */
const timeLikeKeys = /(?:time|stamp|date|_at|At|_ts)$/;

/** Minimum share of the lines that must have a format for it to be considered. */
const shareMin = 0.3;

/** The texts of one key in the lines. */
interface KeyTexts {
  readonly key: string;
  readonly texts: readonly string[];
  /** Whether all values are JSON numbers. */
  readonly areNumbers: boolean;
  /** Whether some values are JSON strings. */
  readonly areQuoted: boolean;
  /** Whether some value is an object or an array, which is stored as its text. */
  readonly isText: boolean;
}

/** The candidate for JSON lines; undefined where too few lines are JSON objects. */
export function jsonCandidate(
  lines: readonly SampleLine[],
  writtenMs: number,
  keys: NonNullable<Candidate['keys']> = [],
): Candidate | undefined {
  const objects = lines.filter(({ text }) => text.trimStart().startsWith('{'));
  const found = jsonPaths(objects);
  if (found.lines === 0 || found.lines < lines.length * shareMin) return undefined;
  const names = found.paths.slice(0, keysMax).map(({ path }) => path);
  const parser = new JsonLineParser(names);
  const texts = textsOf(objects, parser, names).map((each, i): KeyTexts => {
    const { areNumbers, isText } = found.paths[i]!;
    return { ...each, areNumbers, areQuoted: !areNumbers, isText };
  });
  const known = knownKeys(new Map(found.paths.map((path) => [path.path, path.lines])));
  const fields = fieldsOfKeys(texts, writtenMs, known);
  const what = keys.length === 0 ? 'JSON lines' : 'JSON values';
  const title = known.title === undefined ? what : `${what} (${known.title})`;
  return { title, format: 'json', fields, keys };
}

/** The candidate for logfmt; undefined where too few lines are logfmt. */
export function logfmtCandidate(lines: readonly SampleLine[], writtenMs: number): Candidate | undefined {
  const pairs = lines.filter(({ text }) => isPairs(text));
  if (pairs.length === 0 || pairs.length < lines.length * shareMin) return undefined;
  const counts = new Map<string, number>();
  for (const { bytes } of pairs)
    for (const key of logfmtKeys(bytes)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const names = [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, keysMax)
    .map(([key]) => key);
  const inOrder = [...counts.keys()].filter((key) => names.includes(key));
  const texts = textsOf(pairs, new LogfmtLineParser(inOrder), inOrder);
  const fields = fieldsOfKeys(
    texts.map((found) => ({ ...found, areNumbers: false, areQuoted: false, isText: false })),
    writtenMs,
  );
  return { title: 'logfmt', format: 'logfmt', fields };
}

/** Whether a line consists of pairs: at least two, and hardly any words that are not. */
function isPairs(text: string): boolean {
  let pairs = 0;
  let others = 0;
  let inQuotes = false;
  let word = '';
  for (let at = 0; at <= text.length; at++) {
    const character = text[at] ?? ' ';
    if (inQuotes) {
      if (character === '\\') at++;
      else if (character === '"') inQuotes = false;
    } else if (character === '"') {
      inQuotes = true;
    } else if (character === ' ' || character === '\t') {
      if (/^[^="]+=/.test(word)) pairs++;
      else if (word !== '') others++;
      word = '';
    } else if (word.length < 64) {
      word += character;
    }
  }
  return pairs >= 2 && others * 8 <= pairs;
}

function textsOf(
  lines: readonly SampleLine[],
  parser: LineParser,
  keys: readonly string[],
): { readonly key: string; readonly texts: readonly string[] }[] {
  const line = new ParsedLine(keys.length);
  const found = keys.map((key) => ({ key, texts: [] as string[] }));
  for (const { bytes } of lines) {
    if (parser.parse(bytes, 0, bytes.length, true, line) !== null) continue;
    found.forEach(({ texts }, i) => {
      const text = line.text(i);
      if (text !== undefined) texts.push(text);
    });
  }
  return found;
}

/** The keys of Log4j's time. */
const instantKeys = ['instant.epochSecond', 'instant.nanoOfSecond'];
const instantTemplate =
  '{{if .instant.epochSecond}}{{.instant.epochSecond}}.{{printf "%09d" .instant.nanoOfSecond}}{{end}}'.replaceAll(
    /\.(instant\.\w+)/g,
    (_part, key: string) => partOf(key),
  );

function fieldsOfKeys(keys: readonly KeyTexts[], writtenMs: number, known?: KnownKeys): CandidateField[] {
  const names = new FieldNames(new Set(keys.map(({ key }) => key)), known?.names);
  const time = timeOf(keys, writtenMs);
  const fields: CandidateField[] = [];
  const isDayApart = time !== undefined && isDayless(time.reading);
  const joined = isDayApart ? joinedTime(keys, time.key, writtenMs) : undefined;
  const hasInstant = instantKeys.every((instant) => keys.some(({ key }) => key === instant));
  if (hasInstant)
    fields.push({
      name: names.take('time'),
      type: 'time',
      timestamp: { format: 'unix' },
      template: instantTemplate,
    });
  else if (joined !== undefined) fields.push({ name: names.take('time'), type: 'time', ...joined });
  else if (time !== undefined) fields.push(timeFieldOfKey(names.take('time'), time.key, time.reading));
  for (const values of keys) {
    if (values.key === time?.key || (hasInstant && instantKeys.includes(values.key))) continue;
    const name = names.nameFor(values.key);
    const template = known?.templates.get(values.key);
    if (template !== undefined) {
      fields.push({ name, type: 'string', template });
      continue;
    }
    const reading = timeLikeKeys.test(values.key) ? exactReading(values, writtenMs) : undefined;
    if (reading !== undefined) fields.push(timeFieldOfKey(name, values.key, reading));
    else fields.push({ name, source: values.key, ...typeOfKey(name, values) });
  }
  return fields;
}

function timeFieldOfKey(name: string, key: string, reading: TimeReading): CandidateField {
  const { template, ...rest } = reading;
  const of = { name, type: 'time' as const, source: key };
  if (rest.timestamp !== undefined) return { ...of, ...rest };
  if (template === undefined) return of;
  const part = `index . ${JSON.stringify(key)}`;
  return { name, type: 'time', template: `{{if ${part}}}{{slice (${part}) 0 13}}{{end}}` };
}

/** Keys of a day, for logs that have a separate key for the time of day; and of a time zone. */
const dayKeys = /^(?:log_?)?date$/i;
const zoneKeys = /^(?:tz|time_?zone)$/i;

/** The time that the key of a day and that of a time of day give together, with the offset from a third key where there is one. */
function joinedTime(
  keys: readonly KeyTexts[],
  clockKey: string,
  writtenMs: number,
): Pick<CandidateField, 'timestamp' | 'template' | 'otherOrder'> | undefined {
  const clock = keys.find(({ key }) => key === clockKey)!;
  const day = keys.find(({ key, texts }) => dayKeys.test(key) && texts.length === clock.texts.length);
  if (day === undefined) return undefined;
  const zone = keys.find(({ key, texts }) => zoneKeys.test(key) && texts.length === clock.texts.length);
  for (const parts of zone === undefined
    ? [[day, clock]]
    : [
        [day, clock, zone],
        [day, clock],
      ]) {
    const texts = clock.texts.map((_text, i) => parts.map((part) => part.texts[i]!).join(' '));
    const reading = readingOf(texts, writtenMs);
    if (reading?.timestamp === undefined) continue;
    const template = parts.map(({ key }) => `{{index . ${JSON.stringify(key)}}}`).join(' ');
    return { ...reading, template };
  }
  return undefined;
}

/** The key with the time of a record, by its name and its values. */
function timeOf(
  keys: readonly KeyTexts[],
  writtenMs: number,
): { readonly key: string; readonly reading: TimeReading } | undefined {
  const most = Math.max(...keys.map(({ texts }) => texts.length));
  const known = keys.filter(({ key }) => timeKeys.test(key.slice(key.lastIndexOf('.') + 1)));
  const similar = keys.filter(({ key }) => timeLikeKeys.test(key));
  for (const { key, texts, isText } of [...known, ...similar]) {
    if (isText || texts.length < most / 2) continue;
    const reading = readingOf(texts, writtenMs);
    if (reading !== undefined) return { key, reading };
  }
  return undefined;
}

/** Spellings by which a value is a time even if its key does not suggest one: they have a date, and reading them loses nothing. */
const exactSpellings = timeSpellings.filter(({ timestamp }) => timestamp?.format === 'rfc3339');

function exactReading({ texts, isText }: KeyTexts, writtenMs: number): TimeReading | undefined {
  if (isText || texts.some((text) => /\.\d{4}/.test(text))) return undefined;
  return readingOf(texts, writtenMs, exactSpellings);
}

function typeOfKey(
  name: string,
  { texts, areNumbers, areQuoted, isText }: KeyTexts,
): Pick<CandidateField, 'type' | 'unlikeFloat'> {
  if (isText) return { type: 'string' };
  if (areNumbers) return { type: texts.every(isInteger) ? 'int' : 'float' };
  const unlike = areQuoted ? unlikeFloat(texts) : undefined;
  return unlike === undefined ? { type: typeOfField(name, texts) } : { type: 'string', unlikeFloat: unlike };
}
