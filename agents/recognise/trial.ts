import { BatchBuilder, columnValue, type RecordBatch } from '../../engine/index.js';
import { pathCaptures } from '../decode/path-captures.js';
import type { RecordEnds } from '../decode/line-framing.js';
import { recordEndsOf } from '../decode/record-ends.js';
import { type Candidate, type CandidateField, FieldNames } from './field-names.js';
import type { LogSample, SamplePiece } from './log-sample.js';
import { parseAgentFile } from '../definition/agent-file.js';
import type { AgentDefinition } from '../definition/definition.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import { yamlText } from '../definition/yaml.js';

/** Limit on the lines that are not records and are shown. */
const unmatchedShownMax = 5;

/** Limit on the records that are kept to be shown. */
const recordsShownMax = 3;

/** A line of the sample that is not a record. */
export interface UnmatchedLine {
  readonly path: string;
  readonly reason: string;
  readonly text: string;
}

/** Result of decoding a sample by one candidate. */
export interface Trial {
  readonly candidate: Candidate;
  readonly yaml: string;
  readonly definition: AgentDefinition;
  /** Number of lines that are not empty, without those that are skipped. */
  readonly lines: number;
  readonly skippedLines: number;
  readonly unmatchedLines: number;
  readonly records: number;
  readonly unreadableValues: number;
  /** Number of bytes in values that are not UTF-8. */
  readonly replacedBytes: number;
  /** Number of records whose time is null; all records where no field is of type time. */
  readonly untimed: number;
  readonly unmatched: readonly UnmatchedLine[];
  /** The first records of the sample, each with a value for every field of the definition. */
  readonly first: readonly (readonly ShownValue[])[];
}

export type ShownValue = ReturnType<typeof columnValue>;

/** How an agent's file is written and tried. */
export interface TrialSettings extends AgentText {
  /** Path of the agent's file. */
  readonly agentPath: string;
  readonly timezone: string;
}

/** Tries a candidate on a sample with the decoder that loading uses. Throws a `ConfigError` for a candidate that is not a valid agent. */
export function tryCandidate(candidate: Candidate, sample: LogSample, settings: TrialSettings): Trial {
  const agent = agentOf(candidate, settings);
  const run = new TrialRun(agent.definition, settings.timezone);
  for (const piece of sample.pieces) run.add(piece);
  return { ...agent, ...run.result };
}

/** The agent of a candidate. Throws a `ConfigError` as `tryCandidate` does. */
function agentOf(
  candidate: Candidate,
  settings: TrialSettings,
): Pick<Trial, 'candidate' | 'yaml' | 'definition'> {
  const yaml = agentYaml(candidate, settings);
  return { candidate, yaml, definition: parseAgentFile(yaml, settings.agentPath) };
}

/**
 * Completes the agent of a trial: lines that begin with `#` and that the format has no use for are skipped, what else is no
 * record of the format becomes one with its text, and the encoding is named. The trial's numbers stay those of the format.
 */
export function completed(trial: Trial, sample: LogSample, settings: TrialSettings): Trial {
  const { candidate } = trial;
  const isText = ['plain', 'json', 'logfmt'].includes(candidate.format);
  let best = trial;
  if (isText && trial.unmatchedLines > 0 && candidate.start === undefined) {
    const skipping = tryCandidate(withKey(candidate, 'skip', "'^#'"), sample, settings);
    if (skipping.records === trial.records && skipping.skippedLines > 0) best = skipping;
  }
  let found = best.candidate;
  if (isText && best.unmatchedLines > 0) found = withOtherwise(found);
  if (sample.encoding !== undefined) found = withKey(found, 'encoding', sample.encoding);
  if (found === best.candidate) return best;
  const first = best.first.map((values) => found.fields.map((_field, i) => values[i] ?? null));
  return { ...best, ...agentOf(found, settings), first };
}

function withKey(candidate: Candidate, key: string, value: string): Candidate {
  return { ...candidate, keys: [...(candidate.keys ?? []), [key, value]] };
}

/** The candidate, with the part that its field for messages reads as that of other lines; with such a field where it has none. */
function withOtherwise(candidate: Candidate): Candidate {
  const { fields } = candidate;
  const message = fields.find(
    ({ name, type, template }) => name === 'message' && type === 'string' && template === undefined,
  );
  if (message !== undefined) return withKey(candidate, 'otherwise', yamlText(message.source ?? message.name));
  const names = new FieldNames();
  for (const { name } of fields) names.take(name);
  const name = names.take('message');
  return withKey({ ...candidate, fields: [...fields, { name, type: 'string' }] }, 'otherwise', name);
}

class TrialRun {
  readonly result = {
    lines: 0,
    skippedLines: 0,
    unmatchedLines: 0,
    records: 0,
    unreadableValues: 0,
    replacedBytes: 0,
    untimed: 0,
    unmatched: [] as UnmatchedLine[],
    first: [] as ShownValue[][],
  };
  readonly #timeField: number;
  readonly #ends: RecordEnds;

  constructor(
    private readonly definition: AgentDefinition,
    private readonly timezone: string,
  ) {
    this.#ends = recordEndsOf(definition)(new Uint8Array(0));
    this.#timeField = definition.fields.findIndex(({ type }) => type === 'time');
  }

  add({ path, bytes: all, modifiedMs, isCut }: SamplePiece): void {
    // What is cut off may be the rest of the last record.
    const whole = isCut === true ? this.#ends.wholeTo(all, 0, all.length) : 0;
    const bytes = whole > 0 ? all.subarray(0, whole) : all;
    const decoder = createRecordDecoder(this.definition, {
      captures: pathCaptures(this.definition, path),
      timezone: this.timezone,
      written: { byMs: modifiedMs },
      columnar: false,
    });
    const { result } = this;
    result.lines += linesWithText(bytes, 0, bytes.length);
    const builder = new BatchBuilder(this.definition.schema);
    const reject = (reason: string, start: number, end: number): void => {
      result.unmatchedLines += linesWithText(bytes, start, end);
      if (result.unmatched.length >= unmatchedShownMax) return;
      result.unmatched.push({ path, reason, text: Buffer.from(bytes.subarray(start, end)).toString() });
    };
    for (let at = 0; at < bytes.length;) {
      at = decoder.decode(bytes, at, bytes.length, builder, reject);
      this.#take(builder.finish());
    }
    result.unreadableValues += decoder.counters.unreadableValues;
    result.replacedBytes += decoder.counters.replacedBytes;
    result.skippedLines += decoder.counters.skippedLines;
    result.lines -= decoder.counters.skippedLines;
  }

  #take({ length, columns }: RecordBatch): void {
    const { result } = this;
    const time = columns[this.#timeField];
    for (let row = 0; row < length; row++) {
      if (time === undefined || columnValue(time, row) === null) result.untimed++;
      if (result.first.length < recordsShownMax)
        result.first.push(columns.map((column) => columnValue(column, row)));
    }
    result.records += length;
  }
}

/** Number of lines of bytes[start, end) that are not empty. */
function linesWithText(bytes: Uint8Array, start: number, end: number): number {
  let lines = 0;
  let hasText = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === 0x0a) {
      if (hasText) lines++;
      hasText = false;
    } else if (byte !== 0x0d) hasText = true;
  }
  return hasText ? lines + 1 : lines;
}

/** The parts of an agent's file other than the candidate. */
interface AgentText {
  /** `file.path`: a folder and an expression for names. */
  readonly path: string;
  /** Comment lines for the beginning of the file. */
  readonly comments: readonly string[];
}

/** Writes a candidate as the text of an agent's file. */
function agentYaml(
  { format, payload, keys = [], regex, start, fields }: Candidate,
  { path, comments }: AgentText,
): string {
  const captured = [...path.matchAll(/\(\?P<(\w+)>/g)]
    .map(([, name]): CandidateField => ({ name: name!, type: 'string' }))
    .filter(({ name }) => fields.every((field) => field.name !== name));
  const lines = [
    ...comments.map((comment) => `# ${comment}`.trimEnd()),
    'fields:',
    ...[...fields, ...captured].flatMap(fieldLines),
    '',
    'file:',
    `  path: ${quoted(path)}`,
    `  format: ${format}`,
    ...(payload === undefined ? [] : [`  payload: ${payload}`]),
    ...keys.map(([key, value]) => `  ${key}: ${value}`),
    ...(regex === undefined ? [] : [`  regex: ${quoted(regex)}`]),
    ...(start === undefined
      ? []
      : ['  # A record begins at each line that this matches; other lines continue it.', '  multiline:']),
    ...(start === undefined ? [] : [`    start: ${quoted(start)}`]),
    '',
    '# Records are kept for ever unless a period is set:',
    '# retention: { period: 90d }',
  ];
  return `${lines.join('\n')}\n`;
}

function fieldLines({ name, type, source, timestamp, template, otherOrder }: CandidateField): string[] {
  const zone = timestamp?.timezone === undefined ? '' : `, timezone: ${yamlText(timestamp.timezone)}`;
  return [
    `  - name: ${yamlText(name)}`,
    ...(type === 'string' || timestamp !== undefined ? [] : [`    type: ${type}`]),
    ...(source === undefined || source === name ? [] : [`    source: ${yamlText(source)}`]),
    ...(template === undefined ? [] : [`    template: ${quoted(template)}`]),
    ...(otherOrder === undefined
      ? []
      : [`    # The dates of the log can also be read with day and month exchanged: ${quoted(otherOrder)}.`]),
    ...(timestamp === undefined ? [] : [`    timestamp: { format: ${formatText(timestamp.format)}${zone} }`]),
  ];
}

function formatText(format: string): string {
  return /^[a-z][a-z0-9]*$/.test(format) ? format : quoted(format);
}

/** Expressions and templates are easiest to read in single quotes, which can't contain control characters. */
function quoted(text: string): string {
  return /\p{Cc}/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}
