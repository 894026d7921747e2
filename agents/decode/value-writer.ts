import {
  type FloatColumnBuilder,
  type IntColumnBuilder,
  assert,
  type ColumnBuilder,
  type FieldType,
  type StringColumnBuilder,
} from '../../engine/index.js';
import { bytesText, Kind, type ParsedLine } from './parsed-line.js';
import { withoutZeros } from '../definition/template-value.js';
import type { FieldDefinition } from '../definition/definition.js';
import type { YearPlace } from '../../engine/times/timestamp.js';

/** A JavaScript number represents every integer of up to this many digits exactly. */
const exactDigits = 15;

/** An inclusive range of integers. */
interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

/** Range of signed 64-bit integers. */
const int64Range: IntegerRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };

/** Milliseconds around the epoch that a JavaScript date can hold; all of `exactDigits` digits are in this range. */
const epochRange: IntegerRange = { min: -8_640_000_000_000_000n, max: 8_640_000_000_000_000n };

const powersOfTen = Float64Array.from({ length: exactDigits + 1 }, (_, i) => Number(`1e${i}`));

const decimalPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const notFinitePattern = /^[+-]?(?:nan|inf|infinity)$/i;
const jsonNumberPattern = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** With a larger exponent, no mantissa of one line gives a 64-bit integer other than zero. */
const exponentMax = 400;

/** First position from `start` on that is neither blank nor tab. */
export function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x09)) at++;
  return at;
}

/** End of bytes[start, end) without trailing blanks and tabs. */
export function trimBlanks(bytes: Uint8Array, start: number, end: number): number {
  let to = end;
  while (to > start && (bytes[to - 1] === 0x20 || bytes[to - 1] === 0x09)) to--;
  return to;
}

/**
 * Sets the integer that bytes[start, end) holds: an optional sign and decimal digits within `range` (which must include all
 * numbers of fifteen digits), with blanks and tabs around them allowed. Returns false, and sets nothing, where it is not
 * readable.
 */
function setInteger(
  bytes: Uint8Array,
  start: number,
  end: number,
  range: IntegerRange,
  column: IntColumnBuilder,
): boolean {
  const from = skipBlanks(bytes, start, end);
  const to = trimBlanks(bytes, from, end);
  const sign = from < to ? bytes[from]! : 0;
  const first = sign === 0x2d || sign === 0x2b ? from + 1 : from;
  if (first === to) return false;
  let value = 0;
  for (let at = first; at < to; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return false;
    value = value * 10 + digit;
  }
  if (to - first > exactDigits) return setLongInteger(bytes, first, to, sign === 0x2d, range, column);
  column.setNumber(sign === 0x2d ? -value : value);
  return true;
}

function setLongInteger(
  bytes: Uint8Array,
  first: number,
  to: number,
  negative: boolean,
  range: IntegerRange,
  column: IntColumnBuilder,
): boolean {
  let at = first;
  while (at < to && bytes[at] === 0x30) at++;
  // 64 bits have at most 19 digits. A line may have a million, which must not become a BigInt.
  if (to - at > 19) return false;
  const magnitude = BigInt(`0${bytesText(bytes, at, to)}`);
  const value = negative ? -magnitude : magnitude;
  if (value > range.max || value < range.min) return false;
  column.setBigInt(value);
  return true;
}

/**
 * The integer within `range` that is exactly the value of a JSON number with a fraction or exponent (`5.0`, `1.5e3`); null
 * where it is not one.
 */
function jsonInteger(text: string, range: IntegerRange): bigint | null {
  const parts = jsonNumberPattern.exec(text);
  if (parts === null) return null;
  const fraction = parts[3] ?? '';
  const digits = `${parts[2]!}${fraction}`.replace(/^0+/, '');
  if (digits === '') return 0n;
  const exponent = Number(parts[4] ?? 0) - fraction.length;
  const significant = withoutZeros(digits);
  const zeros = digits.length - significant.length + exponent;
  if (zeros < 0 || zeros > exponentMax || significant.length + zeros > 19) return null;
  const value = BigInt(`${parts[1]!}${significant}${'0'.repeat(zeros)}`);
  return value > range.max || value < range.min ? null : value;
}

/**
 * Sets the double nearest to what bytes[start, end) holds: a decimal with or without an exponent, with blanks and tabs
 * around it allowed. `nan` and `inf` are readable but give null. Returns false, and sets nothing, where it is not readable
 * or beyond the range of doubles.
 */
function setFloat(bytes: Uint8Array, start: number, end: number, column: FloatColumnBuilder): boolean {
  const from = skipBlanks(bytes, start, end);
  const to = trimBlanks(bytes, from, end);
  const short = shortDecimal(bytes, from, to);
  if (!Number.isNaN(short)) {
    column.setNumber(short);
    return true;
  }
  const text = bytesText(bytes, from, to);
  if (notFinitePattern.test(text)) {
    column.setNull();
    return true;
  }
  if (!decimalPattern.test(text)) return false;
  const value = Number(text);
  if (!Number.isFinite(value)) return false;
  column.setNumber(value);
  return true;
}

/**
 * The value of a decimal of few digits without an exponent; NaN for any other text. The digits and the power of ten are
 * exact in doubles, so one division rounds correctly.
 */
function shortDecimal(bytes: Uint8Array, from: number, to: number): number {
  const negative = from < to && bytes[from] === 0x2d;
  let value = 0;
  let digits = 0;
  let point = -1;
  for (let at = negative ? from + 1 : from; at < to; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digits++;
    } else if (digit === -2 && point < 0) {
      point = digits;
    } else {
      return NaN;
    }
  }
  if (digits === 0 || digits > exactDigits) return NaN;
  if (point >= 0) value /= powersOfTen[digits - point]!;
  return negative ? -value : value;
}

/** Counts of problems with values. */
export interface ValueCounters {
  /** Values that could not be read as their field's type and are null. */
  unreadableValues: number;
  /** Invalid UTF-8 sequences, and halves of surrogate pairs in JSON, that became U+FFFD. */
  replacedBytes: number;
  /** NULs at the beginning of lines, which were left out. */
  nulBytes: number;
  /** Lines that the agent skips. */
  skippedLines: number;
  /** Texts that were masked. */
  maskedTexts: number;
}

/** No problems. */
export const noValueCounts: ValueCounters = {
  unreadableValues: 0,
  replacedBytes: 0,
  nulBytes: 0,
  skippedLines: 0,
  maskedTexts: 0,
};

export const valueCountNames = Object.keys(noValueCounts) as readonly (keyof ValueCounters)[];

/** Unreadable values of one field. */
export interface UnreadableField {
  /** Number of the field in its agent. */
  readonly field: number;
  readonly values: number;
  /** The first unreadable text that is not `isNoValue`, if there is one, or its beginning. */
  readonly example: string;
  /** The first header of a table that lacks the field's column, or its beginning. */
  readonly lackedBy?: string;
}

/** Says that no column gives a field its values. */
export function describeLacking(
  { field, lackedBy }: UnreadableField,
  fields: readonly Pick<FieldDefinition, 'name' | 'source'>[],
): string {
  const { name, source } = fields[field]!;
  return `${name} is null where the header has no column ${JSON.stringify(source)}, such as ${JSON.stringify(lackedBy)}`;
}

/** Limit on the bytes of an example; a longer text is cut. */
const exampleBytesMax = 60;

/** Limit on the characters of a header that lacks a column. */
const headerShownMax = 200;

/** Whether an unreadable text is how logs write that there is no value: a dash or nothing. */
export function isNoValue(example: string): boolean {
  return example === '' || example === '-';
}

/** Counts problems with values over the life of a decoder, also by field. */
export class ValueTally implements ValueCounters {
  unreadableValues = 0;
  replacedBytes = 0;
  nulBytes = 0;
  skippedLines = 0;
  maskedTexts = 0;
  /** The rows, among those of the batch, that get the time by which they are placed. */
  untimed: number[] = [];
  readonly #fields = new Map<number, { values: number; readonly example: string }>();
  readonly #lackedBy = new Map<number, string>();
  /** Fields counted since the beginning of a line that may be dropped; null outside such a line. */
  #ofLine: number[] | null = null;
  #before = { unreadableValues: 0, replacedBytes: 0 };

  /** Counts an unreadable value of a field; its text is source[start, end). */
  addUnreadable(field: number, source: Uint8Array, start: number, end: number): void {
    this.unreadableValues++;
    this.#ofLine?.push(field);
    const known = this.#fields.get(field);
    const isMissing = end - start === 0 || (end - start === 1 && source[start] === 0x2d);
    if (known !== undefined && (isMissing || !isNoValue(known.example))) {
      known.values++;
      return;
    }
    const text = Buffer.from(source.subarray(start, Math.min(end, start + exampleBytesMax))).toString();
    const example = end - start > exampleBytesMax ? `${text}…` : text;
    this.#fields.set(field, { values: 1 + (known?.values ?? 0), example });
  }

  /** Notes that a header lacks the column of a field. */
  addLacking(field: number, header: string): void {
    if (this.#lackedBy.has(field)) return;
    const shown = header.length > headerShownMax ? `${header.slice(0, headerShownMax)}…` : header;
    this.#lackedBy.set(field, shown);
  }

  /** Begins a line whose counts may have to be dropped, because it is decoded again elsewhere. */
  beginLine(): void {
    this.#ofLine = [];
    this.#before = { unreadableValues: this.unreadableValues, replacedBytes: this.replacedBytes };
  }

  /** Reverts what was counted since `beginLine`. */
  dropLine(): void {
    this.unreadableValues = this.#before.unreadableValues;
    this.replacedBytes = this.#before.replacedBytes;
    for (const field of this.#ofLine ?? []) {
      const known = this.#fields.get(field)!;
      known.values--;
      if (known.values === 0) this.#fields.delete(field);
    }
    this.#ofLine = null;
  }

  /** Keeps what was counted since `beginLine`. */
  keepLine(): void {
    this.#ofLine = null;
  }

  /** Returns the rows without a time of their own since the last call. */
  takeUntimed(): number[] {
    const { untimed } = this;
    this.untimed = [];
    return untimed;
  }

  /** Returns the fields with unreadable values, or without a column, since the last call. */
  takeFields(): UnreadableField[] {
    const lacking = [...this.#lackedBy].map(([field, lackedBy]) => ({
      field,
      values: 0,
      example: '',
      lackedBy,
    }));
    const fields = [...this.#fields].map(([field, { values, example }]) => ({ field, values, example }));
    this.#fields.clear();
    this.#lackedBy.clear();
    return [...joinUnreadable(joinUnreadable(new Map(), lacking), fields).values()];
  }
}

/** Adds up counts by field; the first example of each is kept that is a value. */
export function joinUnreadable(
  into: Map<number, UnreadableField>,
  fields: readonly UnreadableField[],
): Map<number, UnreadableField> {
  for (const each of fields) {
    const known = into.get(each.field);
    if (known === undefined) into.set(each.field, each);
    else {
      const { example } = isNoValue(known.example) ? each : known;
      into.set(each.field, { ...each, ...known, example, values: known.values + each.values });
    }
  }
  return into;
}

/** Writes one field of parsed lines into its column. */
export interface FieldWriter {
  /** Sets the column to write to. */
  bind(column: ColumnBuilder): void;
  /** Sets the column's value from the line. Returns null, or the reason to reject the line. */
  write(line: ParsedLine): string | null;
  /** Set for times whose texts lack the year or the date. */
  readonly undated?: UndatedTimes | undefined;
}

/** The times of a field whose format lacks the year or the date. */
export interface UndatedTimes {
  /** The next lines were written at `writtenMs` at the latest. With `place`, their years are counted from there. */
  begin(writtenMs: number, place: YearPlace | undefined): void;
  /** The state of year counting after the last line; undefined where years are not counted. */
  readonly place: YearPlace | undefined;
}

/** Options of a field's writer. */
export interface WriterOptions {
  /** Time zone of timestamps that have none. */
  readonly timezone: string;
  readonly counters: FieldCounters;
  /** The character before the fraction of a `float`; a point if omitted. */
  readonly decimal?: string | undefined;
}

/** Counts unreadable and repaired values of one field. */
export class FieldCounters {
  /** @param field its number in the agent */
  constructor(
    private readonly tally: ValueTally,
    private readonly field: number,
  ) {}

  /** Counts the value of the parsed field at `place` as unreadable. */
  addUnreadable(line: ParsedLine, place: number): void {
    this.tally.addUnreadable(this.field, line.sources[place]!, line.starts[place]!, line.ends[place]!);
  }

  /** Counts sequences that became U+FFFD. */
  addReplaced(count: number): void {
    this.tally.replacedBytes += count;
  }
}

/** Creates the writer of a field, except for a time with a format. It reads the parsed field at `place`; -1 where nothing provides it. */
export function createValueWriter(
  { type }: FieldDefinition,
  place: number,
  { counters, decimal }: Pick<WriterOptions, 'counters' | 'decimal'>,
): FieldWriter {
  const set = type === 'float' && decimal === ',' ? setFloatWithComma : setters[type];
  return new ValueWriter(set, place, counters);
}

/** The column as an `int` or `time` column; any other kind is a bug. */
export function intColumn(column: ColumnBuilder): IntColumnBuilder {
  assert(column.kind === 'int', 'the batch builder has another schema than the decoder');
  return column;
}

/** The column as a `string` column; any other kind is a bug. */
export function stringColumn(column: ColumnBuilder): StringColumnBuilder {
  assert(column.kind === 'string', 'the batch builder has another schema than the decoder');
  return column;
}

/** The column as a `float` column; any other kind is a bug. */
function floatColumn(column: ColumnBuilder): FloatColumnBuilder {
  assert(column.kind === 'float', 'the batch builder has another schema than the decoder');
  return column;
}

/** Sets the value of a column from the parsed field at `place`, which is there. Returns false, and sets nothing, where it is not readable. */
type SetValue = (line: ParsedLine, place: number, column: ColumnBuilder, counters: FieldCounters) => boolean;

/** How each type of field is read from text and from the values of JSON. */
const setters: Readonly<Record<FieldType, SetValue>> = {
  int: (line, place, column) => setIntegerOf(line, place, int64Range, intColumn(column)),
  float: setFloatOf,
  string: setText,
  // Without a timestamp format: milliseconds since the epoch.
  time: (line, place, column) => setIntegerOf(line, place, epochRange, intColumn(column)),
  bool: setBool,
};

class ValueWriter implements FieldWriter {
  #column: ColumnBuilder | null = null;

  constructor(
    private readonly set: SetValue,
    private readonly place: number,
    private readonly counters: FieldCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = column;
  }

  write(line: ParsedLine): null {
    const { place, counters } = this;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    if (!this.set(line, place, this.#column!, counters)) counters.addUnreadable(line, place);
    return null;
  }
}

/** Sets an integer from digits or from a JSON number with an integer value. */
function setIntegerOf(
  line: ParsedLine,
  place: number,
  range: IntegerRange,
  column: IntColumnBuilder,
): boolean {
  const kind = line.kinds[place]!;
  if (kind === Kind.other) return false;
  const source = line.sources[place]!;
  const start = line.starts[place]!;
  const end = line.ends[place]!;
  if (setInteger(source, start, end, range, column)) return true;
  if (kind !== Kind.number) return false;
  const value = jsonInteger(bytesText(source, start, end), range);
  if (value !== null) column.setBigInt(value);
  return value !== null;
}

/** Texts of `bool` values, in lower case. */
const boolTexts: ReadonlyMap<string, number> = new Map([
  ['true', 1],
  ['yes', 1],
  ['1', 1],
  ['false', 0],
  ['no', 0],
  ['0', 0],
]);
const boolBytesMax = 5;

/** Sets a `bool` from JSON's true and false, and from the texts `true`, `false`, `yes`, `no`, `1` and `0` in any case. */
function setBool(line: ParsedLine, place: number, column: ColumnBuilder): boolean {
  const source = line.sources[place]!;
  const end = line.ends[place]!;
  const from = skipBlanks(source, line.starts[place]!, end);
  const to = trimBlanks(source, from, end);
  const text = to - from <= boolBytesMax ? bytesText(source, from, to).toLowerCase() : '';
  const value = boolTexts.get(text);
  if (value !== undefined) intColumn(column).setNumber(value);
  return value !== undefined;
}

function setFloatOf(line: ParsedLine, place: number, column: ColumnBuilder): boolean {
  return (
    line.kinds[place] !== Kind.other &&
    setFloat(line.sources[place]!, line.starts[place]!, line.ends[place]!, floatColumn(column))
  );
}

/** Sets a float from a text with a comma before the fraction. In such texts a point may separate thousands, so it is not readable. */
function setFloatWithComma(line: ParsedLine, place: number, column: ColumnBuilder): boolean {
  const text = bytesText(line.sources[place]!, line.starts[place]!, line.ends[place]!);
  const bytes = Buffer.from(text.replace(',', '.'));
  return !text.includes('.') && setFloat(bytes, 0, bytes.length, floatColumn(column));
}

function setText(line: ParsedLine, place: number, column: ColumnBuilder, counters: FieldCounters): boolean {
  const text = stringColumn(column);
  const replaced = text.setBytes(line.sources[place]!, line.starts[place]!, line.ends[place]!);
  if (replaced !== 0) counters.addReplaced(replaced);
  if (line.hasReplaced) counters.addReplaced(line.replaced[place]!);
  return true;
}
