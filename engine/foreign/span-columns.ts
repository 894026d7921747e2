import { columnBytes } from '../columns/column.js';
import { makeColumnBuilder, type BuilderState, type ColumnBuilder } from '../columns/column-builder.js';
import { heap } from '../core/arena.js';
import { LogstrataError } from '../core/errors.js';
import { foreignAtOnceBytesMax, foreignSpanBytesMax } from '../core/limits.js';
import type { DecodedSpan, ForeignRead } from './foreign-file.js';

/**
 * Builds the columns of spans from rows that are decoded one by one from the first row of the row group: the wanted span,
 * and other spans while they fit into `foreignAtOnceBytesMax`.
 */
export class SpanColumns {
  /** The complete spans so far. */
  readonly spans: DecodedSpan[] = [];
  readonly #read: ForeignRead;
  #siblingBytes = 0;
  #span = 0;
  #row = 0;
  #state!: BuilderState;
  #builder: ColumnBuilder | null = null;
  #bytesMax = 0;

  constructor(read: ForeignRead) {
    this.#read = read;
    this.#begin();
  }

  /** The builder for the next row; null where the next row's value is not needed. */
  get builder(): ColumnBuilder | null {
    return this.#builder;
  }

  /** Whether no later row is needed. */
  get isComplete(): boolean {
    const { spans, wanted } = this.#read;
    return this.#span >= spans.length || (this.#span > wanted && this.#builder === null);
  }

  /** Ends a row, whose value has been set or is null. Throws `limit` when the wanted span exceeds `foreignSpanBytesMax`. */
  endRow(): void {
    this.#row++;
    this.#state.rows++;
    const { spans, wanted } = this.#read;
    if (this.#builder?.kind === 'string' && this.#builder.bytesUsed > this.#bytesMax) {
      if (this.#span === wanted)
        throw new LogstrataError(
          'limit',
          `more than ${foreignSpanBytesMax} bytes in ${this.#state.rows} rows`,
        );
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
    const { column, spans, wanted } = this.#read;
    const span = spans[this.#span];
    const firstRows = span === undefined ? 0 : span.to - span.from;
    this.#state = { rows: 0, arena: heap, firstRows, usual: null };
    const isWanted = this.#span === wanted;
    this.#bytesMax = isWanted ? foreignSpanBytesMax : foreignAtOnceBytesMax - this.#siblingBytes;
    const isOfUse = span !== undefined && this.#bytesMax > 0;
    this.#builder = isOfUse ? makeColumnBuilder(column.type, this.#state) : null;
  }
}
