import { BatchBuilder, columnValue, type RecordBatch } from '../../engine/index.js';
import { parseAgentFile } from '../definition/agent-file.js';
import type { AgentDefinition } from '../definition/definition.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import type { AgentText } from './agent-yaml.js';
import { agentYaml } from './agent-yaml.js';
import type { Candidate } from './candidate.js';
import type { LogSample, SamplePiece } from './sample.js';

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
  return { candidate, yaml, definition, ...run.result() };
}

class TrialRun {
  #lines = 0;
  #unmatchedLines = 0;
  #records = 0;
  #unreadableValues = 0;
  #untimed = 0;
  readonly #unmatched: UnmatchedLine[] = [];
  readonly #first: ShownValue[][] = [];
  readonly #timeField: number;

  constructor(
    private readonly definition: AgentDefinition,
    private readonly timezone: string,
  ) {
    this.#timeField = definition.fields.findIndex(({ type }) => type === 'time');
  }

  add({ path, bytes, modifiedMs }: SamplePiece): void {
    const decoder = createRecordDecoder(this.definition, {
      captures: new Map(),
      timezone: this.timezone,
      written: { byMs: modifiedMs },
      columnar: false,
    });
    this.#lines += linesWithText(bytes, 0, bytes.length);
    const builder = new BatchBuilder(this.definition.schema);
    const reject = (reason: string, start: number, end: number): void => {
      this.#unmatchedLines += linesWithText(bytes, start, end);
      if (this.#unmatched.length >= unmatchedShownMax) return;
      this.#unmatched.push({ path, reason, text: Buffer.from(bytes.subarray(start, end)).toString() });
    };
    for (let at = 0; at < bytes.length;) {
      at = decoder.decode(bytes, at, bytes.length, builder, reject);
      this.#take(builder.finish());
    }
    this.#unreadableValues += decoder.counters.unreadableValues;
  }

  #take({ length, columns }: RecordBatch): void {
    const time = columns[this.#timeField];
    for (let row = 0; row < length; row++) {
      if (time === undefined || columnValue(time, row) === null) this.#untimed++;
      if (this.#first.length < recordsShownMax)
        this.#first.push(columns.map((column) => columnValue(column, row)));
    }
    this.#records += length;
  }

  result(): Omit<Trial, 'candidate' | 'yaml' | 'definition'> {
    return {
      lines: this.#lines,
      unmatchedLines: this.#unmatchedLines,
      records: this.#records,
      unreadableValues: this.#unreadableValues,
      untimed: this.#untimed,
      unmatched: this.#unmatched,
      first: this.#first,
    };
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
