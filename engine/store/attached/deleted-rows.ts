import { DamageError } from '../../core/errors.js';
import { bitmapBytes, setRange } from '../../kernels/bitmap.js';
import type { RowSpan } from '../../foreign/foreign-file.js';

/** Rows of a file that its table has deleted. They keep their positions and are not answered. */
export interface DeletedRows {
  readonly rows: number;
  /** Base64 of unsigned LEB128 numbers: in turns, how many rows are kept and how many are deleted, from the first row of the file on. */
  readonly at: string;
}

/** Ascending ranges of rows: the first row of each, and the one after its last. */
export type RowRanges = readonly (readonly [from: number, to: number])[];

/** Encodes deleted rows. The ranges may overlap. */
export function encodeDeleted(ranges: RowRanges): DeletedRows {
  const numbers: number[] = [];
  let rows = 0;
  let end = 0;
  for (const [from, to] of ranges) {
    const start = Math.max(from, end);
    if (to <= start) continue;
    if (start === end && numbers.length > 0) numbers[numbers.length - 1]! += to - start;
    else numbers.push(start - end, to - start);
    rows += to - start;
    end = to;
  }
  const bytes: number[] = [];
  for (const number of numbers) addNumber(bytes, number);
  return { rows, at: Buffer.from(bytes).toString('base64') };
}

/** Adds a number in LEB128. */
export function addNumber(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
}

/** The deleted rows of an attached file, by span. */
export class DeletedOfFile {
  /** In the order of the file. */
  readonly #deleted: ReadonlyMap<number, Uint8Array>;
  /** In the order of positions, of spans that were asked for. */
  readonly #hidden = new Map<number, Uint8Array>();

  /** Throws `DamageError` where the file has fewer rows. */
  constructor(
    deleted: DeletedRows | undefined,
    private readonly spans: readonly RowSpan[],
  ) {
    this.#deleted = deleted === undefined ? new Map() : deletedOfSpans(deleted, spans);
  }

  has(span: number): boolean {
    return this.#deleted.has(span);
  }

  /**
   * The rows of a span that has some, one bit for each, in the order of positions. The caller must not change them.
   *
   * @param rowsOf if the span is in another order than the file: finds rows of the row group by their places in the order of positions
   */
  async hidden(
    span: number,
    rowsOf: ((places: Uint32Array) => Promise<Uint32Array>) | null,
  ): Promise<Uint8Array> {
    const deleted = this.#deleted.get(span)!;
    const known = rowsOf === null ? deleted : this.#hidden.get(span);
    if (known !== undefined) return known;
    const { from, to } = this.spans[span]!;
    const rows = await rowsOf!(Uint32Array.from({ length: to - from }, (_, place) => place));
    const hidden = new Uint8Array(deleted.length);
    rows.forEach((row, place) => {
      const at = row - from;
      if ((deleted[at >> 3]! >> (at & 7)) & 1) hidden[place >> 3]! |= 1 << (place & 7);
    });
    this.#hidden.set(span, hidden);
    return hidden;
  }
}

/**
 * The deleted rows of each span that has some, one bit for each row, in the order of the file. Throws `DamageError` where the file has fewer
 * rows.
 */
export function deletedOfSpans({ at }: DeletedRows, spans: readonly RowSpan[]): Map<number, Uint8Array> {
  const bits = new Map<number, Uint8Array>();
  let [row, span, start, isDeleted] = [0, 0, 0, true];
  for (const number of numbersOf(at)) {
    isDeleted = !isDeleted;
    if (!isDeleted) row += number;
    for (let left = isDeleted ? number : 0; left > 0;) {
      while (span < spans.length && row >= start + rowsOf(spans[span]!)) start += rowsOf(spans[span++]!);
      if (span === spans.length) throw new DamageError('"deleted" has rows behind the end of the file', {});
      const length = rowsOf(spans[span]!);
      const own = bits.get(span) ?? new Uint8Array(bitmapBytes(length));
      bits.set(span, own);
      const count = Math.min(left, start + length - row);
      setRange(own, row - start, row - start + count);
      row += count;
      left -= count;
    }
  }
  return bits;
}

function* numbersOf(text: string): Generator<number> {
  let [value, factor] = [0, 1];
  for (const byte of Buffer.from(text, 'base64')) {
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte > 127) continue;
    yield value;
    [value, factor] = [0, 1];
  }
}

function rowsOf({ from, to }: RowSpan): number {
  return to - from;
}
