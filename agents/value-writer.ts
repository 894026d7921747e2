import { assert, assertNever } from '../engine/assert.js';
import type {
  ColumnBuilder,
  FloatColumnBuilder,
  IntColumnBuilder,
  StringColumnBuilder,
} from '../engine/columns/column-builder.js';
import type { FieldDefinition } from './definition.js';
import {
  epochRange,
  int64Range,
  type IntegerRange,
  jsonInteger,
  setFloat,
  setInteger,
  skipBlanks,
  trimBlanks,
} from './number-text.js';
import { bytesText, Kind, type ParsedLine } from './parsed-line.js';
import { compileTimestamp, type TimestampReader } from './timestamp.js';

/** What became of values, counted over the life of a decoder. */
export interface ValueCounters {
  /** Values that did not read as their field's type and are null. */
  unreadableValues: number;
  /** Byte sequences that were not UTF-8 (and halves of surrogate pairs in JSON) and became U+FFFD. */
  replacedBytes: number;
}

/** Writes one field of parsed lines into its column. */
export interface FieldWriter {
  /** Writes into that column from now on; `nowMs` is the time that formats without a year are read at. */
  bind(column: ColumnBuilder, nowMs: number): void;
  /** Sets the column from the line. Returns null, or why the line can't be a record. */
  write(line: ParsedLine): string | null;
}

export interface WriterOptions {
  /** Zone of timestamps that name none. */
  readonly timezone: string;
  readonly counters: ValueCounters;
}

/**
 * The writer of a field's type that reads the parsed field at `place` of the line, -1 where nothing gives it. Throws
 * `invalid` for a bad timestamp format.
 */
export function createValueWriter(
  field: FieldDefinition,
  place: number,
  options: WriterOptions,
): FieldWriter {
  const { counters, timezone } = options;
  switch (field.type) {
    case 'int':
      return new IntegerWriter(place, int64Range, counters);
    case 'float':
      return new FloatWriter(place, counters);
    case 'string':
      return new StringWriter(place, counters);
    case 'time':
      return field.timestamp === undefined
        ? new IntegerWriter(place, epochRange, counters)
        : new TimestampWriter(place, compileTimestamp(field.timestamp, timezone), counters);
    default:
      return assertNever(field.type);
  }
}

function intColumn(column: ColumnBuilder): IntColumnBuilder {
  assert(column.kind === 'int', 'the batch builder has another schema than the decoder');
  return column;
}

/** The builder of a `string` column; another one is our own bug. */
export function stringColumn(column: ColumnBuilder): StringColumnBuilder {
  assert(column.kind === 'string', 'the batch builder has another schema than the decoder');
  return column;
}

/**
 * `int`, and `time` without a timestamp format (milliseconds since the epoch): digits, or a JSON number that is an integer
 * however it is written.
 */
class IntegerWriter implements FieldWriter {
  #column: IntColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly range: IntegerRange,
    private readonly counters: ValueCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = intColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.place;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    if (!setIntegerOf(line, place, this.range, this.#column!)) this.counters.unreadableValues++;
    return null;
  }
}

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

class FloatWriter implements FieldWriter {
  #column: FloatColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly counters: ValueCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    assert(column.kind === 'float', 'the batch builder has another schema than the decoder');
    this.#column = column;
  }

  write(line: ParsedLine): null {
    const place = this.place;
    const kind = place < 0 ? Kind.absent : line.kinds[place]!;
    if (kind === Kind.absent) return null;
    const reads =
      kind !== Kind.other &&
      setFloat(line.sources[place]!, line.starts[place]!, line.ends[place]!, this.#column!);
    if (!reads) this.counters.unreadableValues++;
    return null;
  }
}

class StringWriter implements FieldWriter {
  #column: StringColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly counters: ValueCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = stringColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.place;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    const replaced = this.#column!.setBytes(line.sources[place]!, line.starts[place]!, line.ends[place]!);
    if (replaced !== 0) this.counters.replacedBytes += replaced;
    if (line.hasReplaced) this.counters.replacedBytes += line.replaced[place]!;
    return null;
  }
}

/** Longer texts than any timestamp are not kept for comparison. */
const rememberedBytesMax = 64;

/** `time` with a timestamp format. Neighbouring lines often have the same text, so the last one is remembered. */
class TimestampWriter implements FieldWriter {
  #column: IntColumnBuilder | null = null;
  #nowMs = 0;
  readonly #lastText = new Uint8Array(rememberedBytesMax);
  #lastBytes = -1;
  #lastTimeMs = 0;

  constructor(
    private readonly place: number,
    private readonly read: TimestampReader,
    private readonly counters: ValueCounters,
  ) {}

  bind(column: ColumnBuilder, nowMs: number): void {
    this.#column = intColumn(column);
    // What a text without a year means depends on the time that it is read at.
    if (nowMs !== this.#nowMs) this.#lastBytes = -1;
    this.#nowMs = nowMs;
  }

  write(line: ParsedLine): null {
    const place = this.place;
    const kind = place < 0 ? Kind.absent : line.kinds[place]!;
    if (kind === Kind.absent) return null;
    const source = line.sources[place]!;
    const start = line.starts[place]!;
    const end = line.ends[place]!;
    if (kind !== Kind.other) {
      if (end - start === this.#lastBytes && sameBytes(source, start, this.#lastText, this.#lastBytes)) {
        this.#column!.setNumber(this.#lastTimeMs);
        return null;
      }
      if (this.#readText(source, start, end)) return null;
    }
    this.counters.unreadableValues++;
    return null;
  }

  /** Blanks around a text are left out only when it does not read with them, because they may belong to the layout. */
  #readText(source: Uint8Array, start: number, end: number): boolean {
    let timeMs = this.read(bytesText(source, start, end), this.#nowMs);
    if (timeMs === null) {
      const from = skipBlanks(source, start, end);
      const to = trimBlanks(source, from, end);
      if (to - from < end - start) timeMs = this.read(bytesText(source, from, to), this.#nowMs);
    }
    if (timeMs === null) return false;
    this.#column!.setNumber(timeMs);
    if (end - start > rememberedBytesMax) return true;
    for (let i = start; i < end; i++) this.#lastText[i - start] = source[i]!;
    this.#lastBytes = end - start;
    this.#lastTimeMs = timeMs;
    return true;
  }
}

function sameBytes(source: Uint8Array, start: number, text: Uint8Array, length: number): boolean {
  // Clocks change at the end of their texts.
  for (let i = length - 1; i >= 0; i--) if (source[start + i] !== text[i]) return false;
  return true;
}
