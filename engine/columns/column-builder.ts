import { isUtf8 } from 'node:buffer';
import { heapArrays, type ArraySpace } from '../memory/array-space.js';
import type { BytesColumn, Float64Column, Int64Column, Validity } from './column.js';
import { copyBytes as copyArray, copyShifted } from '../kernels/copy.js';
import { copyBytes, repairUtf8 } from '../terms/utf8.js';
import { bitmapBytes } from '../kernels/bitmap.js';

/** What the columns of one batch builder share: the rows that have ended, and where arrays come from. */
export interface BuilderState {
  /** The row being written has this number. */
  rows: number;
  arrays: ArraySpace;
  /** Rows that columns have room for at first. */
  firstRows: number;
}

export type ColumnBuilder = IntColumnBuilder | FloatColumnBuilder | StringColumnBuilder;

/** Small enough that an agent with many fields and few records costs little; doubled as rows come. */
export const firstRowsDefault = 1024;
const firstBytes = 16 * 1024;
/** A string column's bytes that stay for the next batch: those of a row group of common lines. */
const keptBytesMax = 16 * 1024 * 1024;
/** …and those that a column begins with where the batch before had as many. */
const expectedBytesMax = 4 * 1024 * 1024;
/** Beside those of the batch before. */
export const expectedGrowth = 1.125;

/**
 * The bitmap of a column under construction. There is none before the first null, because most columns have none;
 * from then on each present row sets its bit.
 */
class ValidityBuilder {
  bits: Uint8Array | null = null;

  /** Makes row `row` null; `rows` is the capacity of the column. */
  setNull(row: number, rows: number): void {
    this.bits ??= onesUpTo(row, rows);
    this.bits[row >> 3]! &= ~(1 << (row & 7));
  }

  /** Says of the rows from `row` on what `presence` says from `from` to `to`; all of them are present where it is null. */
  append(presence: Uint8Array | null, from: number, to: number, row: number, rows: number): void {
    if (this.bits === null && presence === null) return;
    for (let i = from; i < to; i++, row++) {
      if (presence !== null && presence[i] === 0) this.setNull(row, rows);
      else if (this.bits !== null) this.bits[row >> 3]! |= 1 << (row & 7);
    }
  }

  grow(rows: number): void {
    if (this.bits !== null) this.bits = grownBytes(this.bits, bitmapBytes(rows));
  }

  finish(rows: number): Validity {
    const bits = this.bits;
    this.bits = null;
    if (bits === null) return null;
    // A row that was cancelled may have left bits behind the last row.
    bits.fill(0, (rows + 7) >> 3);
    if ((rows & 7) !== 0) bits[rows >> 3]! &= (1 << (rows & 7)) - 1;
    // A null may have been overwritten or cancelled.
    if (allOnes(bits, rows)) return null;
    return bits.subarray(0, bitmapBytes(rows));
  }
}

function allOnes(bits: Uint8Array, rows: number): boolean {
  const wholeBytes = rows >> 3;
  for (let i = 0; i < wholeBytes; i++) if (bits[i] !== 255) return false;
  return (rows & 7) === 0 || bits[wholeBytes] === (1 << (rows & 7)) - 1;
}

function onesUpTo(row: number, rows: number): Uint8Array {
  const bits = new Uint8Array(bitmapBytes(rows));
  bits.fill(255, 0, row >> 3);
  bits[row >> 3] = (1 << (row & 7)) - 1;
  return bits;
}

function grownBytes(bytes: Uint8Array, length: number): Uint8Array {
  const grown = new Uint8Array(length);
  grown.set(bytes);
  return grown;
}

/** Builds `int` and `time` columns. */
export class IntColumnBuilder {
  readonly kind = 'int';
  readonly #state: BuilderState;
  readonly #validity = new ValidityBuilder();
  #rowsSet = 0;
  #rowsMax = 0;
  /** Two halves a value, low first: stores of numbers, where stores of bigints would allocate. */
  #halves: Int32Array = new Int32Array(0);

  constructor(state: BuilderState) {
    this.#state = state;
  }

  /** Sets a safe integer. */
  setNumber(value: number): void {
    this.setHalves(value | 0, Math.floor(value / 0x1_0000_0000));
  }

  setBigInt(value: bigint): void {
    this.setHalves(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** Sets `high * 2^32 + low`, where `low` counts as unsigned. Both are taken modulo 2^32. */
  setHalves(low: number, high: number): void {
    const row = this.#state.rows;
    if (row >= this.#rowsMax) this.#grow();
    if (this.#rowsSet < row) this.#setNulls(row);
    this.#rowsSet = row + 1;
    this.#halves[2 * row] = low;
    this.#halves[2 * row + 1] = high;
    const bits = this.#validity.bits;
    if (bits !== null) bits[row >> 3]! |= 1 << (row & 7);
  }

  setNull(): void {
    const row = this.#state.rows;
    if (row >= this.#rowsMax) this.#grow();
    this.#setNulls(row);
    this.#halves[2 * row] = 0;
    this.#halves[2 * row + 1] = 0;
    this.#validity.setNull(row, this.#rowsMax);
    this.#rowsSet = row + 1;
  }

  /**
   * Sets rows `row`, `row + 1`, … to the values from `from` to `to`, whose halves are `halves`, but to null where `presence` is 0.
   * None of them may have been set.
   */
  appendRows(halves: Int32Array, presence: Uint8Array | null, from: number, to: number, row: number): void {
    const rows = row + to - from;
    if (rows > this.#rowsMax) this.#grow(rows);
    this.#setNulls(row);
    this.#halves.set(halves.subarray(2 * from, 2 * to), 2 * row);
    this.#validity.append(presence, from, to, row, this.#rowsMax);
    this.#rowsSet = rows;
  }

  cancelRow(): void {
    const row = this.#state.rows;
    if (this.#rowsSet <= row) return;
    this.#rowsSet = row;
    this.#halves[2 * row] = 0;
    this.#halves[2 * row + 1] = 0;
  }

  /** The ended rows. They must be taken before another is set; then `clear` begins anew in the same array, `drop` in another. */
  view(): Int64Column {
    const length = this.#state.rows;
    while (length > this.#rowsMax) this.#grow();
    this.#setNulls(length);
    const values = new BigInt64Array(this.#halves.buffer, this.#halves.byteOffset, length);
    return { kind: 'int64', length, values, validity: this.#validity.finish(length) };
  }

  clear(): void {
    this.#halves.fill(0, 0, 2 * this.#rowsSet);
    this.#rowsSet = 0;
  }

  drop(): void {
    this.#halves = new Int32Array(0);
    this.#rowsSet = 0;
    this.#rowsMax = 0;
  }

  /** Nulls for the rows before `row` that were ended without a value; their slots are 0 already. */
  #setNulls(row: number): void {
    for (let missing = this.#rowsSet; missing < row; missing++)
      this.#validity.setNull(missing, this.#rowsMax);
    if (this.#rowsSet < row) this.#rowsSet = row;
  }

  #grow(rows = this.#state.rows + 1): void {
    const halves = this.#halves;
    this.#rowsMax = Math.max(this.#state.firstRows, this.#rowsMax * 2, rows);
    this.#halves = this.#state.arrays.halves(2 * this.#rowsMax);
    this.#halves.set(halves);
    this.#validity.grow(this.#rowsMax);
  }
}

/** Builds `float` columns. */
export class FloatColumnBuilder {
  readonly kind = 'float';
  readonly #state: BuilderState;
  readonly #validity = new ValidityBuilder();
  #rowsSet = 0;
  #rowsMax = 0;
  #values: Float64Array = new Float64Array(0);

  constructor(state: BuilderState) {
    this.#state = state;
  }

  /** Sets a number; NaN and the infinities are stored as null. */
  setNumber(value: number): void {
    // The difference is NaN for NaN and for both infinities.
    if (value - value !== 0) {
      this.setNull();
      return;
    }
    const row = this.#state.rows;
    if (row >= this.#rowsMax) this.#grow();
    if (this.#rowsSet < row) this.#setNulls(row);
    this.#rowsSet = row + 1;
    this.#values[row] = value;
    const bits = this.#validity.bits;
    if (bits !== null) bits[row >> 3]! |= 1 << (row & 7);
  }

  setNull(): void {
    const row = this.#state.rows;
    if (row >= this.#rowsMax) this.#grow();
    this.#setNulls(row);
    this.#values[row] = 0;
    this.#validity.setNull(row, this.#rowsMax);
    this.#rowsSet = row + 1;
  }

  /** As that of an `IntColumnBuilder`; values must be finite. */
  appendRows(values: Float64Array, presence: Uint8Array | null, from: number, to: number, row: number): void {
    const rows = row + to - from;
    if (rows > this.#rowsMax) this.#grow(rows);
    this.#setNulls(row);
    this.#values.set(values.subarray(from, to), row);
    this.#validity.append(presence, from, to, row, this.#rowsMax);
    this.#rowsSet = rows;
  }

  cancelRow(): void {
    const row = this.#state.rows;
    if (this.#rowsSet <= row) return;
    this.#rowsSet = row;
    this.#values[row] = 0;
  }

  /** As those of an `IntColumnBuilder`. */
  view(): Float64Column {
    const length = this.#state.rows;
    while (length > this.#rowsMax) this.#grow();
    this.#setNulls(length);
    const values = this.#values.subarray(0, length);
    return { kind: 'float64', length, values, validity: this.#validity.finish(length) };
  }

  clear(): void {
    this.#values.fill(0, 0, this.#rowsSet);
    this.#rowsSet = 0;
  }

  drop(): void {
    this.#values = new Float64Array(0);
    this.#rowsSet = 0;
    this.#rowsMax = 0;
  }

  #setNulls(row: number): void {
    for (let missing = this.#rowsSet; missing < row; missing++)
      this.#validity.setNull(missing, this.#rowsMax);
    if (this.#rowsSet < row) this.#rowsSet = row;
  }

  #grow(rows = this.#state.rows + 1): void {
    const values = this.#values;
    this.#rowsMax = Math.max(this.#state.firstRows, this.#rowsMax * 2, rows);
    this.#values = this.#state.arrays.doubles(this.#rowsMax);
    this.#values.set(values);
    this.#validity.grow(this.#rowsMax);
  }
}

const encoder = new TextEncoder();

/** Builds `string` columns: UTF-8 and offsets. */
export class StringColumnBuilder {
  readonly kind = 'string';
  readonly #state: BuilderState;
  readonly #validity = new ValidityBuilder();
  #rowsSet = 0;
  #rowsMax = 0;
  #offsets: Uint32Array = new Uint32Array(1);
  #bytes: Uint8Array = new Uint8Array(0);
  /** What the batch before took, and some more: in memory that is lent, growing leaves a hole. */
  #bytesExpected = 0;

  constructor(state: BuilderState) {
    this.#state = state;
  }

  /** UTF-8 of the rows set so far. */
  get bytesUsed(): number {
    return this.#offsets[this.#rowsSet]!;
  }

  /** Sets a JavaScript string; a surrogate without its other half becomes U+FFFD. */
  setString(text: string): void {
    const target = this.begin(text.length * 3);
    const at = this.beginOffset;
    const length = text.length;
    let i = 0;
    if (length < 24) {
      // A call into the encoder costs more than a loop over so few characters.
      for (; i < length; i++) {
        const code = text.charCodeAt(i);
        if (code >= 0x80) break;
        target[at + i] = code;
      }
    }
    if (i < length) i = encoder.encodeInto(text, target.subarray(at)).written;
    this.commit(at + i);
  }

  /**
   * Sets bytes[start, end). Sequences that are not UTF-8 become U+FFFD, as the WHATWG decoder does it; returns how many.
   */
  setBytes(bytes: Uint8Array, start: number, end: number): number {
    const target = this.begin(end - start);
    const at = this.beginOffset;
    const seen = copyBytes(bytes, start, end, target, at);
    if (seen < 0x80 || isUtf8(bytes.subarray(start, end))) {
      this.commit(at + end - start);
      return 0;
    }
    const repaired = repairUtf8(bytes, start, end);
    const wider = this.begin(repaired.bytes.length);
    wider.set(repaired.bytes, this.beginOffset);
    this.commit(this.beginOffset + repaired.bytes.length);
    return repaired.replacedAt.length;
  }

  setNull(): void {
    this.begin(0);
    this.#validity.setNull(this.#state.rows, this.#rowsMax);
    this.#rowsSet = this.#state.rows + 1;
    this.#offsets[this.#rowsSet] = this.beginOffset;
  }

  /**
   * Begins the row's value for a writer of its own: the array to write to, from `beginOffset` on, with room for
   * `bytesMax` bytes. What the row had is dropped. Ends with `commit`; until then no other method may be called.
   */
  begin(bytesMax: number): Uint8Array {
    const row = this.#state.rows;
    if (row >= this.#rowsMax) this.#growRows();
    if (this.#rowsSet < row) this.#setNulls(row);
    const needed = this.#offsets[row]! + bytesMax;
    if (needed > this.#bytes.length) this.#growBytes(needed);
    return this.#bytes;
  }

  /** Where the row's value starts in the array that `begin` gave. */
  get beginOffset(): number {
    return this.#offsets[this.#state.rows]!;
  }

  /** Ends the value at `endOffset` of the array; its bytes must be UTF-8. */
  commit(endOffset: number): void {
    const row = this.#state.rows;
    this.#rowsSet = row + 1;
    this.#offsets[row + 1] = endOffset;
    const bits = this.#validity.bits;
    if (bits !== null) bits[row >> 3]! |= 1 << (row & 7);
  }

  /** As that of an `IntColumnBuilder`; value i is bytes[offsets[i], offsets[i + 1]), which must be UTF-8. */
  appendRows(
    bytes: Uint8Array,
    offsets: Uint32Array,
    presence: Uint8Array | null,
    from: number,
    to: number,
    row: number,
  ): void {
    const rows = row + to - from;
    if (rows > this.#rowsMax) this.#growRows(rows);
    this.#setNulls(row);
    const start = offsets[from]!;
    const at = this.#offsets[row]!;
    const end = at + offsets[to]! - start;
    if (end > this.#bytes.length) this.#growBytes(end);
    copyArray(bytes, start, offsets[to]!, this.#bytes, at);
    copyShifted(offsets, from + 1, to + 1, at - start, this.#offsets, row + 1);
    this.#validity.append(presence, from, to, row, this.#rowsMax);
    this.#rowsSet = rows;
  }

  cancelRow(): void {
    if (this.#rowsSet > this.#state.rows) this.#rowsSet = this.#state.rows;
  }

  /** As those of an `IntColumnBuilder`. */
  view(): BytesColumn {
    const length = this.#state.rows;
    while (length > this.#rowsMax) this.#growRows();
    this.#setNulls(length);
    return {
      kind: 'bytes',
      length,
      offsets: this.#offsets.subarray(0, length + 1),
      bytes: this.#bytes.subarray(0, this.#offsets[length]),
      validity: this.#validity.finish(length),
    };
  }

  clear(): void {
    // What few values filled for once is not held on to.
    if (this.#bytes.length > keptBytesMax) this.#bytes = new Uint8Array(0);
    this.#expect();
    this.#rowsSet = 0;
  }

  drop(): void {
    this.#expect();
    this.#offsets = new Uint32Array(1);
    this.#bytes = new Uint8Array(0);
    this.#rowsSet = 0;
    this.#rowsMax = 0;
  }

  /** Remembers what the rows take, unless there are none because they were taken already. */
  #expect(): void {
    if (this.#rowsSet > 0) this.#bytesExpected = Math.min(expectedBytesMax, this.bytesUsed * expectedGrowth);
  }

  #setNulls(row: number): void {
    for (let missing = this.#rowsSet; missing < row; missing++) {
      this.#offsets[missing + 1] = this.#offsets[missing]!;
      this.#validity.setNull(missing, this.#rowsMax);
    }
    if (this.#rowsSet < row) this.#rowsSet = row;
  }

  #growRows(rows = this.#state.rows + 1): void {
    const offsets = this.#offsets;
    this.#rowsMax = Math.max(this.#state.firstRows, this.#rowsMax * 2, rows);
    this.#offsets = this.#state.arrays.offsets(this.#rowsMax + 1);
    copyShifted(offsets, 0, this.#rowsSet + 1, 0, this.#offsets, 0);
    this.#validity.grow(this.#rowsMax);
  }

  #growBytes(needed: number): void {
    const used = this.bytesUsed;
    const expected = this.#state.arrays === heapArrays ? 0 : Math.ceil(this.#bytesExpected);
    const grown = this.#state.arrays.bytes(Math.max(firstBytes, expected, this.#bytes.length * 2, needed));
    copyArray(this.#bytes, 0, used, grown, 0);
    this.#bytes = grown;
  }
}
