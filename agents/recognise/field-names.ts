import { type FieldType, int64Max, int64Min } from '../../engine/index.js';
import type { TimestampFormat } from '../../engine/times/timestamp.js';

/** The usual field name for names that different programs use for the same thing. */
const sameNames: ReadonlyMap<string, string> = new Map([
  ['msg', 'message'],
  ['severity', 'level'],
  ['lvl', 'level'],
  ['levelname', 'level'],
  ['log_level', 'level'],
  ['loglevel', 'level'],
]);

/** Limit on the length of a name; longer ones are unreadable in a terminal. */
const nameLengthMax = 63;

/** Gives each key of a log a distinct field name. */
export class FieldNames {
  readonly #taken = new Set<string>();

  /**
   * @param keys all keys of the log; a usual name that is itself a key is not given to another key
   * @param known names of keys that are known for logs of this kind
   */
  constructor(
    private readonly keys: ReadonlySet<string> = new Set(),
    private readonly known: ReadonlyMap<string, string> = new Map(),
  ) {}

  /** The field name of a key: its words in lower case joined by `_`, or the usual name for it. */
  nameFor(key: string): string {
    const known = this.known.get(key);
    if (known !== undefined) return this.take(known);
    const own = nameOfKey(key);
    const usual = sameNames.get(own);
    return this.take(usual !== undefined && !this.keys.has(usual) ? usual : own);
  }

  /** Reserves `name`; appends a number where it is taken. */
  take(name: string): string {
    let free = name;
    for (let number = 2; this.#taken.has(free); number++) free = `${name}_${number}`;
    this.#taken.add(free);
    return free;
  }
}

/** Converts `requestUri`, `Request-URI` and `request.uri` to `request_uri`. */
function nameOfKey(key: string): string {
  const words = key
    .slice(0, 4 * nameLengthMax)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, nameLengthMax)
    .replace(/^_|_$/g, '');
  if (words === '') return 'field';
  return /^[0-9]/.test(words) ? `n_${words}` : words;
}

/** A field that a candidate proposes. */
export interface CandidateField {
  readonly name: string;
  readonly type: FieldType;
  /** The part of the line, where it has another name than the field. */
  readonly source?: string;
  readonly timestamp?: TimestampFormat;
  readonly template?: string;
  /** For a field that is text although its values are numbers: a value that a float would not give back as it is written. */
  readonly unlikeFloat?: string;
  /** See `TimeReading.otherOrder`. */
  readonly otherOrder?: string;
}

/** A possible format of a log's lines: an agent's definition without a name and a path. */
export interface Candidate {
  /** Name in messages: `JSON lines`. */
  readonly title: string;
  readonly format: 'plain' | 'json' | 'logfmt' | 'otlp' | 'docker' | 'cri' | 'csv' | 'tsv' | 'w3c';
  /** Format of what containers write. */
  readonly payload?: 'plain' | 'json' | 'logfmt';
  /** Other keys of the section `file`, as they are written. */
  readonly keys?: readonly (readonly [key: string, value: string])[];
  readonly regex?: string;
  /** Expression for the first line of a record of several lines. */
  readonly start?: string;
  readonly fields: readonly CandidateField[];
  /** Whether it only keeps each line as it is, because no format was recognised. */
  readonly isLastResort?: boolean;
  /** A note about the records, as lines of at most 72 characters. */
  readonly note?: readonly string[];
}

/** A candidate for lines of text; its fields follow from the groups of the expression. */
export interface LineShape {
  readonly title: string;
  readonly regex: string;
  readonly start?: string;
  /** A group that nearly all lines of such a log have, although a single line may lack it. */
  readonly needs?: string;
  readonly note?: readonly string[];
}

/** A line of the sample, as text and as the bytes that patterns match. */
export interface SampleLine {
  readonly text: string;
  readonly bytes: Buffer;
}

/** A line of the sample with this text. */
export function sampleLine(text: string): SampleLine {
  return { text, bytes: Buffer.from(text) };
}

/** How programs write a missing value. */
const noValue = new Set(['', '-']);

/** Leading zeros are not allowed: a number with them is an identifier. */
const integerShape = /^-?(?:0|[1-9]\d{0,18})$/;
const decimalShape = /^-?(?:0|[1-9]\d{0,15})(?:\.\d{1,18})?$/;
const boolShape = /^(?:true|false)$/i;

/** The types that texts show, the narrowest first; times are recognised elsewhere, by their spelling. */
const shapes: readonly (readonly [FieldType, (text: string) => boolean])[] = [
  ['int', isInteger],
  ['float', (text) => decimalShape.test(text)],
  ['bool', (text) => boolShape.test(text)],
];

/**
 * The type of all texts of a part: int, float or bool where each text is readable as such, ignoring missing values;
 * otherwise string, also where all values are missing.
 */
export function typeOfTexts(texts: Iterable<string>): FieldType {
  let possible = shapes;
  let values = 0;
  for (const text of texts) {
    if (noValue.has(text)) continue;
    values++;
    possible = possible.filter(([, fits]) => fits(text));
    if (possible.length === 0) break;
  }
  return values === 0 ? 'string' : (possible[0]?.[0] ?? 'string');
}

/** The type of a field by its name and its texts. A version is no measure: 1.10 follows 1.9, and is not 1.1. */
export function typeOfField(name: string, texts: Iterable<string>): FieldType {
  const type = typeOfTexts(texts);
  return type === 'float' && /(?:^|_)version$/.test(name) ? 'string' : type;
}

/**
 * The first of texts that are decimals and that a float would not give back as it is written: `1.10`, `8.0`. Such a text is
 * rather a version or another name than a measure.
 */
export function unlikeFloat(texts: readonly string[]): string | undefined {
  if (typeOfTexts(texts) !== 'float') return undefined;
  return texts.find((text) => !noValue.has(text) && String(Number(text)) !== text);
}

/** Whether a text is an integer of 64 bits, without leading zeros. */
export function isInteger(text: string): boolean {
  if (!integerShape.test(text)) return false;
  const value = BigInt(text);
  return value >= int64Min && value <= int64Max;
}
