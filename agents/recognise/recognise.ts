import {
  type Candidate,
  type CandidateField,
  type LineShape,
  type SampleLine,
  typeOfField,
} from './field-names.js';
import { containerCandidate, containerTexts } from './container-lines.js';
import { accessShape } from './access-lines.js';
import { areLevels, headShape, partTexts, recordsOf, type PartTexts } from './line-head.js';
import { jsonCandidate, logfmtCandidate } from './keyed-lines.js';
import { jsonTexts, otlpCandidate } from './json-texts.js';
import { knownShapes } from './known-lines.js';
import { linesOf, type LogSample } from './log-sample.js';
import { completed, tryCandidate, type Trial, type TrialSettings } from './trial.js';
import { tableCandidate } from './table-lines.js';
import { readingOf } from './time-place.js';
import { isTable } from '../definition/definition.js';

/** Number of fields beyond which more fields do not improve the score. */
const fieldsCounted = 10;

/** Value of one more field, as a share of matching lines. */
const fieldWorth = 0.02;

/** Factor for a known format, which is better than a composed one. */
const knownWorth = 1.1;

/**
 * Recognises the format of a sample's lines. Every candidate is tried with the decoder that loading uses, and the one with
 * the best score is returned. The result depends only on the sample and the settings. Undefined for a sample without lines.
 */
export function recognise(sample: LogSample, settings: TrialSettings): Trial | undefined {
  const lines = linesOf(sample);
  if (lines.length === 0) return undefined;
  const writtenMs = Math.max(...sample.pieces.map(({ modifiedMs }) => modifiedMs));
  const texts = containerTexts(lines);
  if (texts === undefined) {
    const best = bestOf(candidatesFor(lines, writtenMs), sample, settings);
    return best === undefined ? undefined : completed(best, sample, settings);
  }
  const bytes = Buffer.from(texts.lines.map(({ text }) => `${text}\n`).join(''));
  const inner = { pieces: [{ path: 'container', bytes, modifiedMs: writtenMs }], isWhole: false };
  const written = bestOf(candidatesFor(texts.lines, writtenMs), inner, settings);
  return tryCandidate(containerCandidate(texts, written?.candidate), sample, settings);
}

/** Whether the end of a file can't be read alone: it lacks the header of a table, or begins inside a value. */
function needsHead({ format, keys = [] }: Candidate): boolean {
  return isTable({ format })
    ? !keys.some(([key]) => key === 'columns')
    : keys.some(([key]) => key === 'multiline');
}

/** The sample without the ends of files. */
function headsOf({ pieces }: LogSample): LogSample {
  return {
    pieces: pieces.filter(({ path }, i) => pieces.findIndex((piece) => piece.path === path) === i),
    isWhole: false,
  };
}

function bestOf(
  candidates: readonly Candidate[],
  sample: LogSample,
  settings: TrialSettings,
): Trial | undefined {
  let best: { readonly trial: Trial; readonly score: number } | undefined;
  for (const candidate of candidates) {
    const trial = tryCandidate(candidate, needsHead(candidate) ? headsOf(sample) : sample, settings);
    const score = scoreOf(trial);
    if (best === undefined || score > best.score + 1e-9) best = { trial, score };
  }
  return best?.trial;
}

/** All candidates for the lines; more specific ones come first. */
export function candidatesFor(lines: readonly SampleLine[], writtenMs: number): Candidate[] {
  const shapes = [accessShape(lines), ...knownShapes, headShape(lines)];
  const plain = shapes.flatMap((shape) =>
    shape === undefined ? [] : plainCandidate(shape, lines, writtenMs),
  );
  const values = jsonTexts(lines);
  const valueKeys: [string, string][] = [['multiline', 'json']];
  if (values?.records !== undefined) valueKeys.push(['records', JSON.stringify(values.records)]);
  const json =
    values === undefined
      ? jsonCandidate(lines, writtenMs)
      : jsonCandidate(values.lines, writtenMs, valueKeys);
  const keyed = [
    otlpCandidate(lines),
    json,
    logfmtCandidate(lines, writtenMs),
    tableCandidate(lines, writtenMs),
  ].filter((each) => each !== undefined);
  return [...keyed, ...plain, wholeLines];
}

/** The last resort, for lines of no other format. */
const wholeLines: Candidate = {
  title: 'lines of text',
  format: 'plain',
  regex: '^(?P<message>.*)$',
  fields: [{ name: 'message', type: 'string' }],
  isLastResort: true,
};

/** Score of the last resort: the format that at least about half of the lines have is better. */
const lastResortScore = 0.5;

/** Minimum share of the lines that have the part that a log of their kind needs. */
const neededShareMin = 0.6;

/** Whether a text is an HTTP status; 000 and `-` mean that no response was sent. */
function isStatus(text: string): boolean {
  return /^(?:\d{3}|-)$/.test(text);
}

/**
 * Whether the part in the place of syslog's host is something else: the level of a program that writes its own times, or a
 * name with a colon after it. Since a host may have the name of a level, lines with a process id as in syslog count as
 * syslog.
 */
function hostIsNone(texts: PartTexts['texts']): boolean {
  const hosts = texts.get('host') ?? [];
  if (hosts.length === 0 || (texts.get('pid') ?? []).length > 0) return false;
  return areLevels(hosts) || hosts.every((host) => host.endsWith(':'));
}

/**
 * The candidate for lines of a shape, with fields from its groups; empty where hardly any line has the shape, or its time is
 * not readable.
 */
function plainCandidate(shape: LineShape, lines: readonly SampleLine[], writtenMs: number): Candidate[] {
  const records = recordsOf(lines, shape.start);
  const found = partTexts(shape.regex, records);
  if (found.lines === 0 || found.lines < records.length / 4) return [];
  if (shape.needs !== undefined && found.texts.get(shape.needs)!.length < found.lines * neededShareMin)
    return [];
  if (hostIsNone(found.texts)) return [];
  const fields: CandidateField[] = [];
  let { regex } = shape;
  for (const [name, texts] of found.texts) {
    if (name === 'time_ms') continue;
    // A group without texts is not kept, except for invalid requests, which may come later.
    if (texts.length === 0 && name !== 'request') regex = regex.replace(`(?P<${name}>`, '(?:');
    else if (name !== 'time' && !name.startsWith('time_')) {
      const type = name === 'status' && texts.every(isStatus) ? 'int' : typeOfField(name, texts);
      if (type !== 'string') regex = withoutDashes(regex, name, texts);
      fields.push({ name, type });
    } else {
      const said = texts.filter((text) => text !== '-');
      const field = timeFieldOfTexts(name, said, found.texts.get('time_ms'), writtenMs);
      if (field !== undefined) regex = withoutDashes(regex, name, texts);
      if (field === undefined && name === 'time') return [];
      fields.push(field ?? { name, type: 'string' });
    }
  }
  const first = fields.findIndex(({ name }) => name === 'time');
  if (first > 0) fields.unshift(...fields.splice(first, 1));
  const { title, start, note } = shape;
  return [
    {
      title,
      format: 'plain',
      regex,
      fields,
      ...(start === undefined ? {} : { start }),
      ...(note === undefined ? {} : { note }),
    },
  ];
}

/**
 * Changes a pattern so that group `name` takes no part where a line has `-` or nothing for a number, which would be an
 * unreadable value.
 */
function withoutDashes(regex: string, name: string, texts: readonly string[]): string {
  const hasDash = texts.includes('-');
  const isEmptied = texts.includes('');
  if (!hasDash && !isEmptied) return regex;
  const group = new RegExp(String.raw`\(\?P<${name}>((?:\[(?:\\.|[^\]\\])*\]|\\.|[^()[\]\\])*)\)`).exec(
    regex,
  );
  if (group === null) return regex;
  const value = isEmptied ? group[1]!.replace(/\*$/, '+') : group[1]!;
  const part = `(?:${hasDash ? '-|' : ''}(?P<${name}>${value}))${isEmptied ? '?' : ''}`;
  return regex.slice(0, group.index) + part + regex.slice(group.index + group[0].length);
}

function timeFieldOfTexts(
  name: string,
  texts: readonly string[],
  milliseconds: readonly string[] | undefined,
  writtenMs: number,
): CandidateField | undefined {
  const reading = readingOf(texts, writtenMs);
  if (reading === undefined) return undefined;
  const hasMilliseconds = name === 'time' && milliseconds !== undefined && milliseconds.length > 0;
  const template = hasMilliseconds ? '{{.time}}.{{printf "%03d" .time_ms}}' : reading.template;
  return { name, type: 'time', ...reading, ...(template === undefined ? {} : { template }) };
}

/** Score of a trial: the share of matching lines, plus a little for each field; less where times are missing. */
function scoreOf({ lines, unmatchedLines, records, untimed, candidate }: Trial): number {
  if (lines === 0 || records === 0) return 0;
  if (candidate.isLastResort === true) return lastResortScore;
  const matched = (lines - unmatchedLines) / lines;
  const timed = 1 - 0.3 * (untimed / records);
  const named = candidate.title.startsWith('lines ') ? 1 : knownWorth;
  return matched * timed * named * (1 + fieldWorth * Math.min(fieldsCounted, candidate.fields.length));
}
