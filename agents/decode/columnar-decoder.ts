import { assert, type BatchBuilder, rowGroupBytesMax, rowGroupRowsMax } from '../../engine/index.js';
import {
  LineColumns,
  lineOdd,
  SpanKind,
  spanKindShift,
  spanLengthMask,
  type ColumnPlan,
  type LinesColumn,
  type StringPiece,
} from './line-columns.js';
import type { LineSplitter } from './line-framing.js';
import type { ParsedLine } from './parsed-line.js';
import type { ValueTally, FieldWriter } from './value-writer.js';
import type { FieldDefinition } from '../definition/definition.js';
import { compileTemplate } from '../definition/template.js';
import { isTimestampFormatName } from '../../engine/times/timestamp.js';

/** Decodes the line bytes[start, end), which is without its line feed, by the decoder that takes every line. Returns whether it was taken. */
export type DecodeLine = (start: number, end: number) => boolean;

/** A field whose values only its writer can make, and the fields of the line that the writer reads. */
export interface WrittenField {
  readonly writer: FieldWriter;
  readonly places: readonly number[];
}

/** Options of a columnar decoder. */
export interface ColumnarOptions {
  readonly splitter: LineSplitter;
  /** A plan for each field of the agent; null where its writer makes the values. */
  readonly plans: readonly (ColumnPlan | null)[];
  /** The fields without a plan. */
  readonly written: readonly WrittenField[];
  /** Filled here with the line's fields, for the writers. */
  readonly line: ParsedLine;
  readonly counters: ValueTally;
  /** Longer lines are decoded one by one. */
  readonly lineBytesMax: number;
}

/** For shorter texts, the calls of kernels cost more than they save. */
const textBytesMin = 1024;

/**
 * Decodes many lines at once: kernels split them and make columns, which are appended to the builder in runs of lines. Lines
 * that the kernels do not take are decoded one by one between the runs.
 */
export class ColumnarDecoder {
  readonly #columns: LineColumns;
  /** For each column of the plan, the number of its field. */
  readonly #fields: readonly number[];
  readonly #fixedBytes: number;

  constructor(private readonly options: ColumnarOptions) {
    const { splitter, plans } = options;
    this.#fields = plans.flatMap((plan, field) => (plan === null ? [] : [field]));
    this.#columns = new LineColumns(
      splitter,
      plans.filter((plan) => plan !== null),
    );
    this.#fixedBytes = plans.length * 8;
  }

  /** Whether kernels, and memory for them, were available in the last call. */
  get usable(): boolean {
    return this.#columns.usable;
  }

  /**
   * Decodes lines from `start` on until the builder is full or a window of lines is done. `isText` says that bytes[start,
   * end) is UTF-8. Returns the end of the last line taken; `start` where the first line has to be decoded singly.
   */
  decode(
    bytes: Uint8Array,
    start: number,
    end: number,
    isText: boolean,
    builder: BatchBuilder,
    decodeLine: DecodeLine,
  ): number {
    if (end - start < textBytesMin) return start;
    const columns = this.#columns;
    const windowEnd = columns.open(bytes, start, end, isText);
    if (windowEnd === start) return start;
    while (columns.next()) {
      if (windowEnd - start > this.options.lineBytesMax) this.#leaveLongLines();
      const taken = this.#takeBatch(bytes, start, builder, decodeLine);
      if (taken < columns.count) return start + columns.lines[2 * taken]!;
      if (builder.full) return Math.min(windowEnd, start + columns.lines[2 * taken - 1]! + 1);
    }
    return windowEnd;
  }

  #leaveLongLines(): void {
    const { lineBytesMax } = this.options;
    const { states, lines, count } = this.#columns;
    for (let i = 0; i < count; i++) if (lines[2 * i + 1]! - lines[2 * i]! > lineBytesMax) states[i] = lineOdd;
  }

  /** Appends the lines of the batch until the builder is full. Returns how many were taken. */
  #takeBatch(bytes: Uint8Array, base: number, builder: BatchBuilder, decodeLine: DecodeLine): number {
    const { states, lines, count } = this.#columns;
    let line = 0;
    while (line < count && !builder.full) {
      if (states[line] === lineOdd) {
        const start = base + lines[2 * line]!;
        let end = base + lines[2 * line + 1]!;
        if (end > start && bytes[end - 1] === 0x0d) end--;
        if (!decodeLine(start, end)) return line;
        line++;
      } else {
        const odd = states.indexOf(lineOdd, line);
        line = this.#takeRun(bytes, base, line, odd < 0 ? count : odd, builder);
      }
    }
    return line;
  }

  /** Appends lines [from, to), or as many as there is room for or the writers accept. Returns the number of the line after them. */
  #takeRun(bytes: Uint8Array, base: number, from: number, to: number, builder: BatchBuilder): number {
    let end = Math.min(to, from + rowGroupRowsMax - builder.rows);
    // The row that reaches the limit is the last one, as if rows were added one by one.
    while (end - from > 1 && builder.bytes + this.#runBytes(from, end) >= rowGroupBytesMax) {
      end = from + ((end - from) >> 1);
    }
    const row = builder.rows;
    if (this.options.written.length > 0) end = this.#writeRows(bytes, base, from, end, builder);
    else builder.endRows(end - from);
    if (end === from) return from;
    this.#fields.forEach((field, i) =>
      appendColumn(builder, field, this.#columns.columns[i]!, from, end, row),
    );
    this.#countUnreadable(bytes, base, from, end);
    return end;
  }

  /** Counts the unreadable values of lines [from, to), which have all been taken. */
  #countUnreadable(bytes: Uint8Array, base: number, from: number, to: number): void {
    const { plans, splitter, counters } = this.options;
    const { columns, spans } = this.#columns;
    columns.forEach((column, i) => {
      if (column.kind === 'string' || column.unreadable === null) return;
      const field = this.#fields[i]!;
      const plan = plans[field]!;
      assert(plan.kind !== 'pieces', 'pieces make strings');
      for (let line = from; line < to; line++) {
        if (column.unreadable[line] === 0) continue;
        const at = 2 * (line * splitter.fields + plan.field);
        const start = base + spans[at]!;
        counters.addUnreadable(field, bytes, start, start + (spans[at + 1]! & spanLengthMask));
      }
    });
  }

  /** Upper bound of the growth of `BatchBuilder.bytes`. */
  #runBytes(from: number, to: number): number {
    let sum = (to - from) * this.#fixedBytes;
    for (const column of this.#columns.columns) {
      if (column.kind === 'string') sum += column.offsets[to]! - column.offsets[from]!;
    }
    return sum;
  }

  /** Lets the writers set their fields of lines [from, to). Returns the first line that they do not accept, which is marked as odd. */
  #writeRows(bytes: Uint8Array, base: number, from: number, to: number, builder: BatchBuilder): number {
    const { written, line, counters } = this.options;
    const { states } = this.#columns;
    line.hasReplaced = false;
    for (let i = from; i < to && !builder.full; i++) {
      counters.beginLine();
      line.templateWork.begin();
      const takes = written.every(
        ({ writer, places }) => this.#fillLine(bytes, base, i, places) && writer.write(line) === null,
      );
      if (!takes) {
        builder.cancelRow();
        counters.dropLine();
        states[i] = lineOdd;
        return i;
      }
      counters.keepLine();
      builder.endRow();
    }
    return to;
  }

  /** Sets the fields at `places` to those of a line. Returns false where a text has escapes, so that it can't be used as it is. */
  #fillLine(bytes: Uint8Array, base: number, number: number, places: readonly number[]): boolean {
    const { line, splitter } = this.options;
    const { spans } = this.#columns;
    for (const place of places) {
      const at = 2 * (number * splitter.fields + place);
      const kind = spans[at + 1]! >>> spanKindShift;
      if (kind === SpanKind.escaped) return false;
      const start = base + spans[at]!;
      line.set(place, kind, bytes, start, start + (spans[at + 1]! & spanLengthMask));
    }
    return true;
  }
}

/** Appends the values of lines [from, to) as the rows from `row` on. */
function appendColumn(
  builder: BatchBuilder,
  field: number,
  column: LinesColumn,
  from: number,
  to: number,
  row: number,
): void {
  const target = builder.column(field);
  const { presence } = column;
  if (column.kind === 'string') {
    assert(target.kind === 'string', 'a plan makes columns of the schema');
    target.appendRows(column.bytes, column.offsets, presence, from, to, row);
  } else {
    assert(target.kind === column.kind, 'a plan makes columns of the schema');
    target.appendRows(column.halves, presence, from, to, row);
  }
}

/**
 * The most digits of a number that the kernels read: 15 for milliseconds since the epoch, so that every number is in
 * `epochRange`, and 19 for 64-bit integers, because the largest has 19. Longer numbers are read one by one.
 */
const epochDigits = 15;
const int64Digits = 19;

/** Origin of a parsed field: its number in the line, or a constant text. */
export type FieldOrigin = { readonly inLine: number } | { readonly text: Uint8Array };

/**
 * How to make a field's column from many lines at once, with the same results as its writer in `field-writer.ts`; null where
 * only the writer can.
 */
export function planColumn(
  field: FieldDefinition,
  originOf: (name: string) => FieldOrigin,
): ColumnPlan | null {
  if (field.template !== undefined) return planTemplate(field, originOf);
  const origin = originOf(field.source);
  if ('text' in origin) return field.type === 'string' ? { kind: 'pieces', pieces: [origin.text] } : null;
  const number = origin.inLine;
  switch (field.type) {
    case 'string':
      return { kind: 'string', field: number };
    case 'float':
      return { kind: 'float', field: number };
    case 'int':
      return { kind: 'int', field: number, digitsMax: int64Digits };
    case 'time':
      return planTime(field, number);
    default:
      return null;
  }
}

function planTime({ timestamp }: FieldDefinition, field: number): ColumnPlan | null {
  if (timestamp === undefined) return { kind: 'int', field, digitsMax: epochDigits };
  const name = timestamp.format.toLowerCase();
  if (!isTimestampFormatName(name)) return null;
  switch (name) {
    case 'rfc3339':
    case 'rfc3339nano':
      return { kind: 'time', field, format: 'rfc3339' };
    case 'common':
    case 'unix':
      return { kind: 'time', field, format: name };
    case 'stamp':
      return null;
  }
}

function planTemplate(
  { template, type }: FieldDefinition,
  originOf: (name: string) => FieldOrigin,
): ColumnPlan | null {
  const { flat } = compileTemplate(template!);
  if (flat === undefined || type !== 'string') return null;
  const pieces: StringPiece[] = [];
  const addText = (bytes: Uint8Array): void => {
    if (bytes.length > 0) pieces.push(bytes);
  };
  addText(Buffer.from(flat.texts[0]!));
  flat.names.forEach((name, i) => {
    const origin = originOf(name);
    if ('text' in origin) addText(origin.text);
    else pieces.push(origin.inLine);
    addText(Buffer.from(flat.texts[i + 1]!));
  });
  return { kind: 'pieces', pieces };
}
