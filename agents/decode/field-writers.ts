import { isUtf8 } from 'node:buffer';
import {
  type ColumnBuilder,
  type StringColumnBuilder,
  valueBytesMax,
  type IntColumnBuilder,
  type BatchBuilder,
  fieldTextBytesMax,
} from '../../engine/index.js';
import { Kind, ParsedLine, bytesText } from './parsed-line.js';
import { type Template, compileTemplate } from '../definition/template.js';
import { TemplateOverrun, templateStepsMax } from '../definition/template-value.js';
import {
  type FieldWriter,
  stringColumn,
  type UndatedTimes,
  type FieldCounters,
  skipBlanks,
  trimBlanks,
  intColumn,
  type WriterOptions,
  createValueWriter,
} from './value-writer.js';
import {
  compileTimestamp,
  isUndated,
  lacksYear,
  type TimestampFormat,
  type TimestampReader,
  YearWalk,
  type YearPlace,
} from '../../engine/times/timestamp.js';
import type { FieldDefinition } from '../definition/definition.js';

const tooManyStepsReason = `takes more than ${templateStepsMax} steps in the templates of its fields`;

/** Renders a template over the parsed fields of one line. */
class Renderer {
  /** The text of the last `render`. */
  text = '';
  #line: ParsedLine | null = null;
  readonly #places: ReadonlyMap<string, number>;
  readonly #get = (name: string): string | undefined => this.#textOf(name);

  constructor(
    private readonly field: string,
    private readonly template: Template,
    placeOf: (name: string) => number,
    private readonly counters: FieldCounters,
  ) {
    this.#places = new Map(template.fields.map((name) => [name, placeOf(name)]));
  }

  /** Returns null, or the reason to reject the line. */
  render(line: ParsedLine): string | null {
    this.#line = line;
    line.replacedInTexts = 0;
    try {
      this.text = this.template.render(this.#get, line.templateWork);
    } catch (error) {
      if (error instanceof TemplateOverrun) return tooManyStepsReason;
      throw error;
    }
    if (line.replacedInTexts > 0) this.counters.addReplaced(line.replacedInTexts);
    // A UTF-16 unit takes at most three bytes in UTF-8.
    if (this.text.length * 3 <= valueBytesMax) return null;
    const bytes = Buffer.byteLength(this.text);
    if (bytes <= valueBytesMax) return null;
    return `the template of field "${this.field}" gives ${bytes} bytes, more than ${valueBytesMax}`;
  }

  #textOf(name: string): string | undefined {
    const place = this.#places.get(name) ?? -1;
    return place < 0 ? undefined : this.#line!.text(place);
  }
}

/** Writes a `string` field with a template. */
class StringTemplateWriter implements FieldWriter {
  readonly #renderer: Renderer;
  #column: StringColumnBuilder | null = null;

  constructor(field: string, template: Template, placeOf: (name: string) => number, counters: FieldCounters) {
    this.#renderer = new Renderer(field, template, placeOf, counters);
  }

  bind(column: ColumnBuilder): void {
    this.#column = stringColumn(column);
  }

  write(line: ParsedLine): string | null {
    const problem = this.#renderer.render(line);
    if (problem === null) this.#column!.setString(this.#renderer.text);
    return problem;
  }
}

const encoder = new TextEncoder();

/** Writes a field of another type with a template: the rendered text is read like a parsed field; an empty one is null. */
class TemplateWriter implements FieldWriter {
  readonly #renderer: Renderer;
  readonly #rendered = new ParsedLine(1);

  /** @param inner reads the parsed field 0 of the rendered line */
  constructor(
    field: string,
    template: Template,
    placeOf: (name: string) => number,
    private readonly inner: FieldWriter,
    counters: FieldCounters,
  ) {
    this.#renderer = new Renderer(field, template, placeOf, counters);
  }

  bind(column: ColumnBuilder): void {
    this.inner.bind(column);
  }

  get undated(): UndatedTimes | undefined {
    return this.inner.undated;
  }

  write(line: ParsedLine): string | null {
    const problem = this.#renderer.render(line);
    if (problem !== null) return problem;
    const bytes = encoder.encode(this.#renderer.text);
    this.#rendered.set(0, bytes.length === 0 ? Kind.absent : Kind.text, bytes, 0, bytes.length);
    return this.inner.write(this.#rendered);
  }
}

/** Places of a time and of its year among the parsed fields of a line; -1 where nothing provides them. */
export interface TimePlaces {
  readonly time: number;
  readonly year: number;
}

/** Longer texts, which no timestamp has, are not remembered. */
const rememberedBytesMax = 64;

/**
 * Writes a `time` field with a timestamp format. Remembers the last text, because neighbouring lines often have the same
 * one. Throws `invalid` for an invalid format.
 */
class TimestampWriter implements FieldWriter {
  readonly undated: UndatedReader | undefined;
  readonly #read: TimestampReader;
  #column: IntColumnBuilder | null = null;
  readonly #lastText = new Uint8Array(rememberedBytesMax);
  #lastBytes = -1;
  #lastYear: number | null = null;
  #lastBegin = 0;
  #lastTimeMs = 0;

  constructor(
    format: TimestampFormat,
    private readonly places: TimePlaces,
    private readonly options: Pick<WriterOptions, 'timezone' | 'counters'>,
  ) {
    this.#read = compileTimestamp(format, options.timezone);
    if (isUndated(format)) this.undated = new UndatedReader(this.#read, lacksYear(format));
  }

  bind(column: ColumnBuilder): void {
    this.#column = intColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.places.time;
    const kind = place < 0 ? Kind.absent : line.kinds[place]!;
    if (kind === Kind.absent) return null;
    const year = this.undated === undefined ? null : yearOf(line, this.places.year);
    const isRead = kind !== Kind.other && !Number.isNaN(year) && this.#writeTime(line, place, year);
    if (!isRead) this.options.counters.addUnreadable(line, place);
    return null;
  }

  #writeTime(line: ParsedLine, place: number, year: number | null): boolean {
    const source = line.sources[place]!;
    const start = line.starts[place]!;
    const end = line.ends[place]!;
    const begin = this.undated?.begins ?? 0;
    if (end - start === this.#lastBytes && year === this.#lastYear && begin === this.#lastBegin) {
      if (sameBytes(source, start, this.#lastText, this.#lastBytes)) {
        this.#column!.setNumber(this.#lastTimeMs);
        return true;
      }
    }
    const timeMs = this.#readText(source, start, end, year);
    if (timeMs === null) return false;
    this.#column!.setNumber(timeMs);
    if (end - start > rememberedBytesMax) return true;
    for (let i = start; i < end; i++) this.#lastText[i - start] = source[i]!;
    this.#lastBytes = end - start;
    this.#lastYear = year;
    this.#lastBegin = begin;
    this.#lastTimeMs = timeMs;
    return true;
  }

  /** Reads the text with its blanks first, because they may belong to the layout; then without them. */
  #readText(source: Uint8Array, start: number, end: number, year: number | null): number | null {
    const read = (from: number, to: number): number | null => {
      const text = bytesText(source, from, to);
      return this.undated === undefined ? this.#read(text, 0) : this.undated.read(text, year);
    };
    const timeMs = read(start, end);
    if (timeMs !== null) return timeMs;
    const from = skipBlanks(source, start, end);
    const to = trimBlanks(source, from, end);
    return to - from < end - start ? read(from, to) : null;
  }
}

function sameBytes(source: Uint8Array, start: number, text: Uint8Array, length: number): boolean {
  // Compare from the end, where the texts of successive times differ.
  for (let i = length - 1; i >= 0; i--) if (source[start + i] !== text[i]) return false;
  return true;
}

const yearShape = /^\d{4}$/;

/** The year that the line or its file's name gives for its times; null where there is none, NaN for an invalid one. */
function yearOf(line: ParsedLine, place: number): number | null {
  const text = place < 0 ? undefined : line.text(place);
  if (text === undefined || text === '') return null;
  return yearShape.test(text) ? Number(text) : NaN;
}

/** Reads times of a format without the year or without the date. */
class UndatedReader implements UndatedTimes {
  /** Number of `begin` calls. The same text may mean another time after each. */
  begins = 0;
  #writtenMs = 0;
  #walk: YearWalk | null = null;

  /** @param countsYears whether the texts have a date, so that years can be counted */
  constructor(
    private readonly reader: TimestampReader,
    private readonly countsYears: boolean,
  ) {}

  begin(writtenMs: number, place: YearPlace | undefined): void {
    this.begins++;
    this.#writtenMs = writtenMs;
    this.#walk = place === undefined || !this.countsYears ? null : new YearWalk(place);
  }

  get place(): YearPlace | undefined {
    return this.#walk?.place;
  }

  read(text: string, year: number | null): number | null {
    if (!this.countsYears) return this.reader(text, this.#writtenMs);
    return this.reader(text, this.#writtenMs, year ?? this.#yearsBack);
  }

  readonly #yearsBack = (latestMs: number): number => this.#walk?.step(latestMs) ?? 0;
}

/**
 * Creates the writer of a field. `placeOf` returns the place of a parsed field in the line, or -1 where nothing provides it.
 * Throws `invalid` for an invalid template or timestamp format.
 */
export function createFieldWriter(
  field: FieldDefinition,
  placeOf: (name: string) => number,
  options: WriterOptions,
): FieldWriter {
  const valueWriter = (time: number, year: number): FieldWriter =>
    field.timestamp === undefined
      ? createValueWriter(field, time, options)
      : new TimestampWriter(field.timestamp, { time, year }, options);
  if (field.template === undefined) return valueWriter(placeOf(field.source), placeOf(yearSource));
  const template = compileTemplate(field.template);
  const { counters } = options;
  if (field.type === 'string') return new StringTemplateWriter(field.name, template, placeOf, counters);
  return new TemplateWriter(field.name, template, placeOf, valueWriter(0, -1), counters);
}

/** Name of the parsed field with the year for times that have a date without one. A template includes the year in its text. */
export const yearSource = 'year';

/** Names of the parsed fields that a field is read from. */
export function sourcesOf(field: FieldDefinition): readonly string[] {
  const { template, timestamp, source } = field;
  if (template !== undefined) return compileTemplate(template).fields;
  return timestamp !== undefined && lacksYear(timestamp) ? [source, yearSource] : [source];
}

/** Binds all writers to the columns of a builder. */
export function bindWriters(writers: readonly FieldWriter[], builder: BatchBuilder): void {
  writers.forEach((writer, i) => writer.bind(builder.column(i)));
}

/** Bytes of U+FFFD, which replaces a byte of invalid UTF-8. */
const replacementBytes = 3;

/** Limit on the bytes of a text from a file's path: no system has longer paths. */
const nameBytesMax = 4096;

/** Why a line is rejected of which many fields take the same long text. */
const tooMuchTextReason = `the texts of its fields have more than ${fieldTextBytesMax} bytes together`;

/**
 * Limits the total text that the fields of a line are read from: each may be as long as the line, and there may be a
 * thousand fields. Templates with more than texts and fields are limited by their steps instead.
 */
export class FieldTexts {
  /** Longer lines must be checked by `problem`. */
  readonly lineBytesMax: number;
  /** Places of the parsed fields whose texts are taken, once per use. */
  readonly #places: readonly number[];
  /** Bytes of the constant texts of templates. */
  readonly #fixedBytes: number;

  constructor(fields: readonly FieldDefinition[], placeOf: (name: string) => number) {
    const names: string[] = [];
    let fixedBytes = 0;
    for (const field of fields) {
      const template = field.template === undefined ? undefined : compileTemplate(field.template);
      if (template === undefined) names.push(...sourcesOf(field));
      if (template?.flat === undefined) continue;
      for (const name of template.flat.names) names.push(name);
      for (const text of template.flat.texts) fixedBytes += Buffer.byteLength(text);
    }
    this.#places = names.map(placeOf).filter((place) => place >= 0);
    this.#fixedBytes = fixedBytes;
    const textBytesMax = (fieldTextBytesMax - fixedBytes) / Math.max(1, this.#places.length);
    this.lineBytesMax = Math.floor((textBytesMax - nameBytesMax) / replacementBytes);
  }

  /** Returns null, or the reason to reject a parsed line. */
  problem(line: ParsedLine): string | null {
    let bytes = this.#fixedBytes;
    for (const place of this.#places) {
      if (line.kinds[place] === Kind.absent) continue;
      const text = line.sources[place]!.subarray(line.starts[place], line.ends[place]);
      bytes += isUtf8(text) ? text.length : text.length * replacementBytes;
      if (bytes > fieldTextBytesMax) return tooMuchTextReason;
    }
    return null;
  }
}
