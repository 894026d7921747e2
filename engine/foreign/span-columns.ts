import { columnBytes } from '../columns/column.js';
import { makeColumnBuilder, type BuilderState, type ColumnBuilder } from '../columns/column-builder.js';
import { heap } from '../core/arena.js';
import { assert, LogstrataError } from '../core/errors.js';
import { foreignAtOnceBytesMax, foreignSpanBytesMax, int64Max, int64Min } from '../core/limits.js';
import { FormatError } from '../parquet/format.js';
import {
  wantedSpan,
  type DecodedSpan,
  type DecodedSpans,
  type ForeignColumn,
  type ForeignRead,
} from './foreign-file.js';
import { ticksToMs, type LeafValue, type ValueFormat } from './stored-type.js';

/**
 * Builds the columns of spans from rows that are decoded one by one from the first row of the row group: the wanted span,
 * and other spans while they fit into `foreignAtOnceBytesMax`.
 */
class SpanColumns {
  /** The complete spans so far. */
  readonly spans: DecodedSpan[] = [];
  #siblingBytes = 0;
  #span = 0;
  #row = 0;
  #state!: BuilderState;
  #builder: ColumnBuilder | null = null;
  #bytesMax = 0;

  constructor(private readonly read: ForeignRead) {
    this.#begin();
  }

  /** The builder for the next row; null where the next row's value is not needed. */
  get builder(): ColumnBuilder | null {
    return this.#builder;
  }

  /** Whether no later row is needed. */
  get isComplete(): boolean {
    const { spans, wanted } = this.read;
    return this.#span >= spans.length || (this.#span > wanted && this.#builder === null);
  }

  /** Ends a row, whose value has been set or is null. Throws `limit` when the wanted span exceeds `foreignSpanBytesMax`. */
  endRow(): void {
    this.#row++;
    this.#state.rows++;
    const { spans, wanted } = this.read;
    if (this.#builder?.kind === 'string' && this.#builder.bytesUsed > this.#bytesMax) {
      if (this.#span === wanted) throw tooManyBytes(this.#state.rows);
      this.#siblingBytes = foreignAtOnceBytesMax;
      this.#builder = null;
    }
    const { from, to } = spans[this.#span]!;
    if (this.#row < to) return;
    if (this.#builder !== null) {
      const taken = this.#builder.take(to - from);
      if (this.#span !== wanted) this.#siblingBytes += columnBytes(taken);
      this.spans.push({ span: this.#span, column: taken });
    }
    this.#span++;
    this.#begin();
  }

  #begin(): void {
    const { column, spans, wanted } = this.read;
    const span = spans[this.#span];
    const firstRows = span === undefined ? 0 : span.to - span.from;
    this.#state = { rows: 0, arena: heap, firstRows, usual: null };
    const isWanted = this.#span === wanted;
    this.#bytesMax = isWanted ? foreignSpanBytesMax : foreignAtOnceBytesMax - this.#siblingBytes;
    const isOfUse = span !== undefined && this.#bytesMax > 0;
    this.#builder = isOfUse ? makeColumnBuilder(column.type, this.#state) : null;
  }
}

/** Gives the rows of a column one after another. */
export interface RowSource extends Pick<ValueFormat, 'text'> {
  /** Reads the next row of a column that is not nested; null where it has no value. */
  value(): LeafValue | null;
  /** Reads the next row as JSON; null where it has no value. */
  json(): string | null;
  /** Skips the next rows. */
  skip(rows: number): void;
}

/** Builds the columns of spans value by value, from rows that begin with the row group. */
export function buildSpans(read: ForeignRead, rows: RowSource): Pick<DecodedSpans, 'spans' | 'replaced'> {
  const columns = new SpanColumns(read);
  const addRow = rowAdder(read.column, rows);
  let replaced = 0;
  while (!columns.isComplete) {
    const { builder } = columns;
    if (builder === null) rows.skip(1);
    else replaced += addRow(builder);
    columns.endRow();
  }
  return { spans: columns.spans, replaced };
}

/** Builds a column of the wanted rows only, the first of which `source` begins with. Throws `limit` as `buildSpans` does. */
export function buildRows(read: ForeignRead, source: RowSource): Pick<DecodedSpans, 'spans' | 'replaced'> {
  const { column, wanted } = read;
  const { from, to } = wantedSpan(read);
  const rows = read.rows ?? Uint32Array.from({ length: to - from }, (_, i) => from + i);
  const state: BuilderState = { rows: 0, arena: heap, firstRows: rows.length, usual: null };
  const builder = makeColumnBuilder(column.type, state);
  const addRow = rowAdder(column, source);
  let next = rows[0]!;
  let replaced = 0;
  for (const row of rows) {
    source.skip(row - next);
    replaced += addRow(builder);
    state.rows++;
    next = row + 1;
    if (builder.kind === 'string' && builder.bytesUsed > foreignSpanBytesMax) throw tooManyBytes(state.rows);
  }
  return { spans: [{ span: wanted, column: builder.take(rows.length) }], replaced };
}

function tooManyBytes(rows: number): LogstrataError {
  return new LogstrataError('limit', `more than ${foreignSpanBytesMax} bytes in ${rows} rows`);
}

/** Returns a function that reads the next row and sets its value. It returns as `valueSetter` says. */
function rowAdder(column: ForeignColumn, rows: RowSource): (builder: ColumnBuilder) => number {
  const setValue = valueSetter(column, rows.text);
  return (builder) => {
    if (column.values.kind === 'json') {
      assert(builder.kind === 'string', 'JSON is text');
      const json = rows.json();
      if (json !== null) builder.setString(json);
      return 0;
    }
    const value = rows.value();
    return value === null ? 0 : setValue(builder, value);
  };
}

/**
 * Returns a function that sets a value of a column that is not nested. It returns the number of invalid UTF-8 sequences that
 * were replaced, and throws `FormatError` for an integer beyond the range of `int`.
 */
function valueSetter(
  { values }: ForeignColumn,
  textOf: (value: LeafValue) => string,
): (builder: ColumnBuilder, value: LeafValue) => number {
  return (builder, value) => {
    switch (builder.kind) {
      case 'string':
        if (values.kind === 'bytes' && value instanceof Uint8Array)
          return builder.setBytes(value, 0, value.length);
        builder.setString(textOf(value));
        return 0;
      case 'float':
        builder.setNumber(typeof value === 'number' ? value : Number(textOf(value)));
        return 0;
      case 'int': {
        const stored = BigInt(value as boolean | bigint);
        const integer = values.kind === 'ticks' ? ticksToMs(stored, values) : stored;
        const isInRange = integer >= int64Min && integer <= int64Max;
        // A time beyond the range of times is null, also where our own kernels decode it.
        if (!isInRange && values.kind === 'ticks') return 0;
        if (!isInRange) throw new FormatError(`the integer ${integer} contradicts the bounds in the file`, 0);
        builder.setBigInt(integer);
        return 0;
      }
    }
  };
}
