import { closing, LogstrataError, BatchBuilder, columnValue, type RecordBatch } from '../../engine/index.js';
import { pathCaptures } from '../decode/path-captures.js';
import { LineFramer, textStart } from '../decode/line-framing.js';
import { SourceCursor } from '../sources/source-cursor.js';
import { type SampleLine, type Candidate, type CandidateField, sampleLine } from './field-names.js';
import { parseAgentFile } from '../definition/agent-file.js';
import type { AgentDefinition } from '../definition/definition.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import { yamlText } from '../definition/yaml.js';

/** Bytes that are read at the beginning of a file, and also at its end unless it is compressed. */
export const sampleBytes = 256 * 1024;

/** Limit on the lines of all pieces together that are looked at one by one; enough to include rare lines. */
export const sampleLinesMax = 2000;

/** Limit on the bytes of a line that are looked at. */
const lineTextMax = 64 * 1024;

/** Complete lines of a log. */
interface SamplePiece {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** When the file was last modified, in milliseconds; no line is newer. */
  readonly modifiedMs: number;
}

/** A sample of one or more logs of the same format. */
export interface LogSample {
  readonly pieces: readonly SamplePiece[];
  /** Whether the sample has all lines of the files. */
  readonly isWhole: boolean;
}

/**
 * Reads the beginnings of logs (plain, .gz or .zst), and the ends of those that are plain. Throws `SourceError` for a file
 * that can't be read, and `invalid` where there is no complete line.
 */
export async function readSample(paths: readonly string[]): Promise<LogSample> {
  const pieces: SamplePiece[] = [];
  let isWhole = true;
  for (const path of paths) {
    await closing(SourceCursor.open(path), async (cursor) => {
      isWhole = (await samplePieces(cursor, pieces)) && isWhole;
    });
  }
  return { pieces, isWhole };
}

/** Adds the pieces of one file. Returns whether they are the whole file. */
async function samplePieces(cursor: SourceCursor, pieces: SamplePiece[]): Promise<boolean> {
  const { path, compression } = cursor;
  const { size, mtimeMs: modifiedMs } = cursor.file;
  const frame = await new LineFramer(cursor, 0, false, undefined, sampleBytes).next();
  if (frame === null) return true;
  if (frame.kind === 'long') {
    const message = `${path} begins with a line of ${frame.lengthBytes} bytes: it is not a text log`;
    throw new LogstrataError('invalid', message, { path });
  }
  // The frame may be larger than a piece; the remainder is dropped.
  const head = cutToLines(frame.bytes.subarray(0, frame.end), sampleBytes);
  pieces.push({ path, modifiedMs, bytes: head.slice() });
  if (compression !== 'none') {
    return frame.kind === 'tail' || (head.length === frame.end && (await cursor.next()) === null);
  }
  if (head.length >= size) return true;
  const end = await cursor.fileEnd(Math.min(sampleBytes, size - head.length));
  const follows = end.length === size - head.length;
  const tail = follows ? end : end.subarray(end.indexOf(0x0a) + 1);
  if (tail.length > 0) pieces.push({ path, modifiedMs, bytes: tail });
  return follows;
}

/** The lines of a text that fit into `bytesMax` bytes; the whole text where it is a single line. */
function cutToLines(bytes: Uint8Array, bytesMax: number): Uint8Array {
  if (bytes.length <= bytesMax) return bytes;
  const feed = bytes.subarray(0, bytesMax).lastIndexOf(0x0a);
  return feed < 0 ? bytes : bytes.subarray(0, feed + 1);
}

/** The lines of the sample that are not blank; the same number from each piece. */
export function linesOf({ pieces }: LogSample): SampleLine[] {
  const decoder = new TextDecoder();
  const linesMax = Math.ceil(sampleLinesMax / Math.max(1, pieces.length));
  return pieces.flatMap(({ bytes }) => {
    const lines: SampleLine[] = [];
    for (let at = 0; at < bytes.length && lines.length < linesMax;) {
      const feed = bytes.indexOf(0x0a, at);
      const end = feed < 0 ? bytes.length : feed;
      const start = textStart(bytes, at, end);
      const text = decoder
        .decode(bytes.subarray(start, Math.min(end, start + lineTextMax)))
        .replace(/\r$/, '');
      if (text.trim() !== '') lines.push(sampleLine(text));
      at = end + 1;
    }
    return lines;
  });
}

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
  /** Number of lines that are not empty. */
  readonly lines: number;
  readonly unmatchedLines: number;
  readonly records: number;
  readonly unreadableValues: number;
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
  const yaml = agentYaml(candidate, settings);
  const definition = parseAgentFile(yaml, settings.agentPath);
  const run = new TrialRun(definition, settings.timezone);
  for (const piece of sample.pieces) run.add(piece);
  return { candidate, yaml, definition, ...run.result };
}

class TrialRun {
  readonly result = {
    lines: 0,
    unmatchedLines: 0,
    records: 0,
    unreadableValues: 0,
    untimed: 0,
    unmatched: [] as UnmatchedLine[],
    first: [] as ShownValue[][],
  };
  readonly #timeField: number;

  constructor(
    private readonly definition: AgentDefinition,
    private readonly timezone: string,
  ) {
    this.#timeField = definition.fields.findIndex(({ type }) => type === 'time');
  }

  add({ path, bytes, modifiedMs }: SamplePiece): void {
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
