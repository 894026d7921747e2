import { isUtf8 } from 'node:buffer';
import {
  assert,
  type BatchBuilder,
  lineBytesMax,
  LogstrataError,
  rowGroupRowsMax,
} from '../../engine/index.js';
import { DelimitedLineSplitter } from './delimited-lines.js';
import { JsonLineSplitter } from './json-lines.js';
import { type LineSplitter, MultilineRecords, textStart, type TextRange } from './line-framing.js';
import { ContainerDecoder, ContainerRecords } from './container-records.js';
import { planColumn, type FieldOrigin, ColumnarDecoder } from './columnar-decoder.js';
import {
  isOfContainers,
  isTable,
  lineFormatOf,
  type AgentDefinition,
  type Encoding,
  type LineFormat,
} from '../definition/definition.js';
import { ReencodingDecoder } from './encodings.js';
import { delimitedSteps } from './delimited-steps.js';
import { FieldTexts, bindWriters, createFieldWriter, sourcesOf } from './field-writers.js';
import { JsonLineParser } from './json-decoder.js';
import { JsonValues, JsonValuesDecoder } from './json-values.js';
import { OtlpLineParser } from './otlp-lines.js';
import { prepared } from './prepared-text.js';
import {
  LogfmtLineParser,
  MultilineDecoder,
  PlainLineParser,
  type LinesOrigin,
  type RecordDecoder,
  type RejectLine,
  type RejectText,
} from './line-decoder.js';
import { type GivenParts, Kind, ParsedLine, type LineParser } from './parsed-line.js';
import { TableDecoder, type RowDecoder } from './table-decoder.js';
import { TableHeaders } from './table-headers.js';
import { type TableHeader, TableRowParser } from './table-rows.js';
import { rowSteps } from './table-steps.js';
import { requireGoing, type StopFlag } from './stop-flag.js';
import { ValueTally, FieldCounters, type FieldWriter, type UndatedTimes } from './value-writer.js';
import type { Written } from '../../engine/times/timestamp.js';

/** Options of a decoder, with the origin of its first lines. */
export interface RecordDecoderOptions extends LinesOrigin {
  /** Time zone of timestamps that have none. */
  readonly timezone: string;
  /** Milliseconds after which `decode` returns after the current line, for a caller whose thread has other work too. */
  readonly turnMs?: number | undefined;
  /** The encoding of the lines; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
  /** Whether many lines are decoded at once where possible, with the same results; true if omitted. */
  readonly columnar?: boolean;
}

/**
 * Creates the decoder for lines of one source of an agent. Throws `invalid` for an invalid pattern, template, timestamp
 * format or time zone.
 *
 * With `multiline`, the lines of a record, joined by `\n`, take the place of a line, and bytes[start, end) must hold
 * complete records.
 *
 * Lines. One `\r` before the `\n` is not part of the line. Empty lines (for JSON and logfmt also lines of blanks) are
 * neither records nor rejected. Lines longer than `lineBytesMax`, and those that the format can't parse, are rejected. NULs
 * and byte order marks at the beginning of a line are not part of it; elsewhere, a NUL is a normal character.
 *
 * Values. What the line lacks is null (a capture that did not take part, a missing key, a JSON null). What can't be read as
 * the field's type is null and counted as unreadable:
 * - `int`: an optional sign and digits within 64 bits; a JSON number may also have a fraction or exponent if its value is an
 *   integer (`5.0`, `1e3`);
 * - `float`: a decimal with or without an exponent, within the range of doubles; `nan` and `inf` are null but not counted;
 * - `time`: by its timestamp format, or without one an `int` of milliseconds since the epoch;
 * - `bool`: JSON's true and false; `true`, `false`, `yes`, `no`, `1` and `0` as text, in any case;
 * - `string`: the text, with invalid UTF-8 replaced by U+FFFD and counted; JSON booleans, numbers, objects and arrays as
 *   they are written in the line.
 *
 * Blanks and tabs around booleans, numbers and times are ignored. A field with a template is read from the template's text
 * instead; an empty text is the empty string, and null for other types.
 */
export function createRecordDecoder(
  definition: AgentDefinition,
  options: RecordDecoderOptions,
): RecordDecoder {
  const decoder = createTextDecoder(definition, options);
  return options.encoding === undefined ? decoder : new ReencodingDecoder(decoder, options.encoding);
}

function createTextDecoder(definition: AgentDefinition, options: RecordDecoderOptions): RecordDecoder {
  const file = lineFormatOf(definition) ?? figureLines;
  if (isOfContainers(file)) {
    const records = new ContainerRecords(file, definition.fields.flatMap(sourcesOf));
    const own = { ...options, columnar: false };
    const texts = new LineDecoder(definition, textFormatOf(file), own, records.line);
    return new ContainerDecoder(prepared(texts, file), records);
  }
  const single = new LineDecoder(definition, file, options);
  const lines = prepared(single, file);
  if (file.values !== undefined) return new JsonValuesDecoder(lines, new JsonValues(file.values.records));
  if (isTable(file)) {
    const { fields } = definition;
    return new TableDecoder(lines, single, new TableHeaders(file, fields), fields, options);
  }
  return file.multiline === undefined
    ? lines
    : new MultilineDecoder(lines, new MultilineRecords(file.multiline));
}

/** Line format of a `system` agent, whose figures are JSON. */
const figureLines: LineFormat = { format: 'json' };

/** Format of the texts in lines of containers. */
export function textFormatOf({ payload = 'plain', regex = '', otherwise }: LineFormat): LineFormat {
  return payload === 'plain' ? { format: payload, regex, otherwise } : { format: payload, otherwise };
}

/** Text size from which it pays to prepare a columnar decoder again after the file's captures have changed. */
const columnarBytesMin = 256 * 1024;

class LineDecoder implements RowDecoder {
  readonly counters = new ValueTally();
  readonly #parser: LineParser;
  #columnar: ColumnarDecoder | null;
  /** Creates the columnar decoder for other captures; null where there is none. */
  readonly #columnarFor: ((captures: ReadonlyMap<string, string>) => ColumnarDecoder | null) | null;
  readonly #line: ParsedLine;
  readonly #writers: readonly FieldWriter[];
  readonly #undated: readonly UndatedTimes[];
  readonly #texts: FieldTexts;
  #stop: StopFlag | undefined;
  readonly #turnMs: number;
  #turnEndMs = Infinity;
  readonly #fields: number;
  readonly #fromLine: number;
  /** Place of the part that gets the text of a line that is no record of its format; -1 for none. */
  readonly #otherwise: number;
  readonly #fromName: readonly string[];
  readonly #given: GivenParts | undefined;
  /** The place of each given part that fields use; else -1. The first one is the whole text. */
  readonly #givenPlaces: readonly number[];
  #captures: ReadonlyMap<string, string>;
  #columnarIsStale = false;

  constructor(
    definition: AgentDefinition,
    file: LineFormat,
    options: RecordDecoderOptions,
    given?: GivenParts,
  ) {
    const { captures, timezone } = options;
    this.#stop = options.stop;
    this.#turnMs = options.turnMs ?? Infinity;
    const wanted = [...new Set(definition.fields.flatMap(sourcesOf))];
    // Fields from the file's name come after those that the parser fills from the line; they are the same for all lines.
    const fromGiven = wanted.filter((name) => given?.names.includes(name) === true);
    const fromLine = wanted.filter((name) => !captures.has(name) && !fromGiven.includes(name));
    const fromName = wanted.filter((name) => captures.has(name));
    const names = [...fromLine, ...fromName, ...fromGiven];
    const line = new ParsedLine(names.length);
    this.#parser = createParser(file, fromLine);
    this.#line = line;
    this.#fromLine = fromLine.length;
    this.#otherwise = file.otherwise === undefined ? -1 : fromLine.indexOf(file.otherwise);
    this.#fromName = fromName;
    this.#setCaptures(captures);
    this.#fields = definition.fields.length;
    const placeOf = (name: string): number => names.indexOf(name);
    this.#given = given;
    this.#givenPlaces = given?.names.map(placeOf) ?? [];
    this.#writers = definition.fields.map((field, i) => {
      const counters = new FieldCounters(this.counters, i);
      return createFieldWriter(field, placeOf, { timezone, counters, decimal: file.decimal });
    });
    this.#undated = this.#writers.flatMap(({ undated }) => undated ?? []);
    this.#useWritten(options.written);
    this.#captures = captures;
    this.#texts = new FieldTexts(definition.fields, placeOf);
    this.#columnarFor =
      options.columnar === false
        ? null
        : (current) => this.#createColumnar(definition, file, fromLine, current);
    this.#columnar = this.#columnarFor?.(captures) ?? null;
  }

  #createColumnar(
    { fields }: AgentDefinition,
    file: LineFormat,
    fromLine: readonly string[],
    captures: ReadonlyMap<string, string>,
  ): ColumnarDecoder | null {
    const splitter = createSplitter(file, fromLine, this.#parser);
    if (splitter === null) return null;
    const originOf = (name: string): FieldOrigin => {
      const text = captures.get(name);
      return text === undefined ? { inLine: fromLine.indexOf(name) } : { text: Buffer.from(text) };
    };
    const plans = fields.map((field) =>
      field.type === 'float' && file.decimal !== undefined ? null : planColumn(field, originOf),
    );
    const written = fields.flatMap((field, i) => {
      if (plans[i] !== null) return [];
      const places = sourcesOf(field).map((name) => fromLine.indexOf(name));
      return [{ writer: this.#writers[i]!, places: places.filter((place) => place >= 0) }];
    });
    const { lineBytesMax } = this.#texts;
    return new ColumnarDecoder({
      splitter,
      plans,
      written,
      line: this.#line,
      counters: this.counters,
      lineBytesMax,
    });
  }

  use({ captures, written, stop }: LinesOrigin): void {
    this.#useCaptures(captures);
    this.#useWritten(written);
    this.#stop = stop;
  }

  useHeader(header: TableHeader): void {
    assert(this.#parser instanceof TableRowParser, 'only tables have headers');
    this.#parser.useHeader(header);
    this.#columnar = null;
    this.#columnarIsStale = true;
  }

  addLacking(field: number, header: string): void {
    this.counters.addLacking(field, header);
  }

  #useCaptures(captures: ReadonlyMap<string, string>): void {
    if (this.#fromName.every((name) => captures.get(name) === this.#captures.get(name))) return;
    this.#setCaptures(captures);
    this.#captures = captures;
    // The columnar decoder's plans contain the captures: it is created again once there is enough text.
    this.#columnar = null;
    this.#columnarIsStale = true;
  }

  #useWritten({ byMs, years }: Written): void {
    this.#undated.forEach((times, i) => times.begin(byMs, years?.[i]));
  }

  get years(): NonNullable<Written['years']> {
    return this.#undated.map(({ place }) => place);
  }

  #setCaptures(captures: ReadonlyMap<string, string>): void {
    this.#fromName.forEach((name, i) => {
      const bytes = Buffer.from(captures.get(name)!);
      this.#line.set(this.#fromLine + i, Kind.text, bytes, 0, bytes.length);
    });
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    assert(
      builder.schema.fields.length === this.#fields,
      'the batch builder has another schema than the decoder',
    );
    bindWriters(this.#writers, builder);
    this.beginTurn();
    if (this.#columnarIsStale && end - start >= columnarBytesMin) {
      this.#columnar = this.#columnarFor?.(this.#captures) ?? null;
      this.#columnarIsStale = false;
    }
    const lines = bytes.subarray(0, end);
    const isText = isUtf8(bytes.subarray(start, end));
    const decodeLine = (from: number, to: number): boolean =>
      this.#decodeLine(bytes, from, to, isText, builder, reject);
    let columnar = this.#columnar;
    let at = start;
    while (at < end && !builder.full) {
      if (columnar !== null) {
        const reached = columnar.decode(bytes, at, end, isText, builder, decodeLine);
        if (reached > at) {
          at = reached;
          continue;
        }
        // Decode singly for now. There may be memory for the kernels again in the next call.
        if (!columnar.usable) columnar = null;
      }
      const lineFeed = lines.indexOf(0x0a, at);
      const next = lineFeed < 0 ? end : lineFeed + 1;
      let lineEnd = lineFeed < 0 ? end : lineFeed;
      if (lineEnd > at && lines[lineEnd - 1] === 0x0d) lineEnd--;
      if (!decodeLine(at, lineEnd)) break;
      at = next;
      if (this.turnIsOver) break;
    }
    return at;
  }

  beginTurn(): void {
    this.#turnEndMs = this.#turnMs === Infinity ? Infinity : performance.now() + this.#turnMs;
  }

  get turnIsOver(): boolean {
    return this.#turnEndMs !== Infinity && performance.now() >= this.#turnEndMs;
  }

  decodeText(text: TextRange, builder: BatchBuilder, reject: RejectText, mayBeSeveral = false): boolean {
    const { bytes, start, end } = text;
    bindWriters(this.#writers, builder);
    const isText = isUtf8(bytes.subarray(start, end));
    const rejectPart: RejectLine = (reason, from, to, kept) =>
      reject(reason, kept ?? (to - from < end - start ? bytes.slice(from, to) : undefined));
    return this.#decodeLine(bytes, start, end, isText, builder, rejectPart, mayBeSeveral);
  }

  kept(): undefined {
    return undefined;
  }

  /** Decodes a line. Returns false, and takes nothing, where it has more records than there is room for in the builder. */
  #decodeLine(
    bytes: Uint8Array,
    lineStart: number,
    end: number,
    isText: boolean,
    builder: BatchBuilder,
    reject: RejectLine,
    mayBeSeveral = true,
  ): boolean {
    requireGoing(this.#stop);
    const parser = this.#parser;
    const start = this.skipNuls(bytes, lineStart, end);
    if (end - start > lineBytesMax) {
      reject(`has ${end - start} bytes, more than ${lineBytesMax}`, start, end);
      return true;
    }
    if (parser.isBlank(bytes, start, end)) return true;
    const line = this.#line;
    const noRecord = parser.parse(bytes, start, end, isText, line);
    const several = (noRecord !== null && mayBeSeveral && parser.several?.(bytes, start, end)) || null;
    if (several !== null && typeof several === 'object')
      return this.#decodeSeveral(several, bytes, start, end, builder, reject);
    const isOther = noRecord !== null && this.#otherwise >= 0;
    if (isOther) {
      line.kinds.fill(Kind.absent, 0, this.#fromLine);
      line.hasReplaced = false;
      line.repairs = 0;
      line.set(this.#otherwise, Kind.text, bytes, start, end);
    }
    let problem = isOther ? null : noRecord;
    if (this.#given !== undefined) problem = this.#setGiven(this.#given, problem, bytes, start, end);
    problem = problem === null ? this.#writeRecord(end - start, builder) : (several ?? problem);
    if (problem !== null) reject(problem, start, end);
    else if (isOther) this.counters.untimed.push(builder.rows - 1);
    return true;
  }

  /** Decodes the records of a line that has several. */
  #decodeSeveral(
    records: readonly TextRange[],
    line: Uint8Array,
    start: number,
    end: number,
    builder: BatchBuilder,
    reject: RejectLine,
  ): boolean {
    if (records.length > rowGroupRowsMax) {
      reject(`has ${records.length} records, more than ${rowGroupRowsMax}`, start, end);
      return true;
    }
    if (builder.rows + records.length > rowGroupRowsMax) {
      builder.close();
      return false;
    }
    for (const { bytes, start: from, end: to } of records) {
      requireGoing(this.#stop);
      const problem =
        this.#parser.parse(bytes, from, to, false, this.#line) ?? this.#writeRecord(to - from, builder);
      if (problem === null) continue;
      if (bytes === line) reject(problem, from, to);
      else reject(problem, start, end, bytes.slice(from, to));
    }
    return true;
  }

  /** Writes the record that was parsed last, of so many bytes. Returns null, or the reason to reject it. */
  #writeRecord(sizeBytes: number, builder: BatchBuilder): string | null {
    let problem = sizeBytes > this.#texts.lineBytesMax ? this.#texts.problem(this.#line) : null;
    problem ??= this.#writeFields();
    if (problem === null) {
      builder.endRow();
      this.counters.replacedBytes += this.#line.repairs;
    } else builder.cancelRow();
    return problem;
  }

  /** Sets the given parts. A text that is not in its format has only these, where a field takes all of it; else it is a problem. */
  #setGiven(
    given: GivenParts,
    problem: string | null,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): string | null {
    const line = this.#line;
    const places = this.#givenPlaces;
    const whole = places[0]!;
    if (problem !== null) {
      if (whole < 0) return problem;
      line.kinds.fill(Kind.absent, 0, this.#fromLine);
      line.hasReplaced = false;
      line.repairs = 0;
    }
    for (let i = 1; i < places.length; i++) if (places[i]! >= 0) line.setFrom(places[i]!, given.line, i);
    if (whole >= 0) line.set(whole, Kind.text, bytes, start, end);
    return null;
  }

  skipNuls(bytes: Uint8Array, lineStart: number, end: number): number {
    const start = textStart(bytes, lineStart, end);
    for (let at = lineStart; at < start; at++) if (bytes[at] === 0) this.counters.nulBytes++;
    return start;
  }

  #writeFields(): string | null {
    const writers = this.#writers;
    this.#line.templateWork.begin();
    for (let i = 0; i < writers.length; i++) {
      const problem = writers[i]!.write(this.#line);
      if (problem !== null) return problem;
    }
    return null;
  }
}

/** Creates the parser of an agent's lines for the named parts. Throws `invalid` for an invalid pattern. */
export function createParser(file: LineFormat, names: readonly string[]): LineParser {
  switch (file.format) {
    case 'plain':
      if (file.regex === undefined) throw new LogstrataError('invalid', 'format plain needs a regex');
      return new PlainLineParser(file.regex, names);
    case 'json':
      return new JsonLineParser(names);
    case 'otlp':
      return new OtlpLineParser(names);
    case 'docker':
    case 'cri':
      return createParser(textFormatOf(file), names);
    case 'logfmt':
      return new LogfmtLineParser(names);
    case 'csv':
    case 'tsv':
    case 'w3c':
      return new TableRowParser(names, file.trim === true);
  }
}

/**
 * Creates the splitter that takes many lines apart at once; for a table, under the header in force. Null for logfmt, OTLP
 * and values to trim, and for a pattern that needs more than searching delimiters.
 */
function createSplitter(file: LineFormat, names: readonly string[], parser: LineParser): LineSplitter | null {
  if (parser instanceof TableRowParser) {
    if (file.trim === true) return null;
    const steps = rowSteps(parser.header, parser.fields);
    return steps === null ? null : new DelimitedLineSplitter(steps, names.length);
  }
  switch (file.format) {
    case 'plain': {
      const steps = delimitedSteps(file.regex ?? '', names);
      return steps === null ? null : new DelimitedLineSplitter(steps, names.length);
    }
    case 'json':
      return new JsonLineSplitter(names);
    default:
      return null;
  }
}
