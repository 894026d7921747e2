import {
  assert,
  assertNever,
  type ColumnBuilder,
  type FloatColumnBuilder,
  type IntColumnBuilder,
  type StringColumnBuilder,
} from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
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
import type { YearPlace } from '../times/written.js';
import type { ValueTally } from './value-counters.js';

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
  field: FieldDefinition,
  place: number,
  { counters }: Pick<WriterOptions, 'counters'>,
): FieldWriter {
  switch (field.type) {
    case 'int':
      return new IntegerWriter(place, int64Range, counters);
    case 'float':
      return new FloatWriter(place, counters);
    case 'string':
      return new StringWriter(place, counters);
    case 'time':
      return new IntegerWriter(place, epochRange, counters);
    case 'bool':
      return new BoolWriter(place, counters);
    default:
      return assertNever(field.type);
  }
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

/**
 * Writes `int`, and `time` without a timestamp format (milliseconds since the epoch), from digits or from a JSON number with
 * an integer value.
 */
class IntegerWriter implements FieldWriter {
  #column: IntColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly range: IntegerRange,
    private readonly counters: FieldCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = intColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.place;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    if (!setIntegerOf(line, place, this.range, this.#column!)) this.counters.addUnreadable(line, place);
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

/** Writes `bool` from JSON's true and false, and from the texts `true`, `false`, `yes`, `no`, `1` and `0` in any case. */
class BoolWriter implements FieldWriter {
  #column: IntColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly counters: FieldCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = intColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.place;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    const [start, end] = [line.starts[place]!, line.ends[place]!];
    const source = line.sources[place]!;
    const from = skipBlanks(source, start, end);
    const to = trimBlanks(source, from, end);
    const text = to - from <= boolBytesMax ? bytesText(source, from, to).toLowerCase() : '';
    const value = boolTexts.get(text);
    if (value === undefined) this.counters.addUnreadable(line, place);
    else this.#column!.setNumber(value);
    return null;
  }
}

class FloatWriter implements FieldWriter {
  #column: FloatColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly counters: FieldCounters,
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
    if (!reads) this.counters.addUnreadable(line, place);
    return null;
  }
}

class StringWriter implements FieldWriter {
  #column: StringColumnBuilder | null = null;

  constructor(
    private readonly place: number,
    private readonly counters: FieldCounters,
  ) {}

  bind(column: ColumnBuilder): void {
    this.#column = stringColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.place;
    if (place < 0 || line.kinds[place] === Kind.absent) return null;
    const replaced = this.#column!.setBytes(line.sources[place]!, line.starts[place]!, line.ends[place]!);
    if (replaced !== 0) this.counters.addReplaced(replaced);
    if (line.hasReplaced) this.counters.addReplaced(line.replaced[place]!);
    return null;
  }
}
