import { isUtf8 } from 'node:buffer';
import { heap, uint32sOf, type Arena } from '../core/arena.js';
import { assert, LogstrataError } from '../core/errors.js';
import { typeFacts, type FieldType } from '../core/schema.js';
import { copyBytes, repairUtf8 } from '../core/utf8.js';
import { bitmapBytes, spreadBits } from '../kernels/bitmap.js';
import { copyBytes as copyArray, copyFromShared, copyShifted, copyWords } from '../kernels/copy.js';
import {
  halvesOf,
  numberColumn,
  type BytesColumn,
  type NumberColumn,
  type PlainColumn,
  type Validity,
} from './column.js';

/** The state that the columns of a batch builder share. */
export interface BuilderState {
  /** Number of ended rows, which is the index of the row that is being set. */
  rows: number;
  /** Allocates the arrays. */
  arena: Arena;
  /** Number of rows that columns have room for at first. */
  firstRows: number;
  /** Rows and bytes of a typical finished batch; null where they are not known. */
  readonly usual: { readonly rows: number; readonly bytes: number } | null;
}

/** A builder of one column. `kind` says which methods it has. */
export type ColumnBuilder = IntColumnBuilder | FloatColumnBuilder | StringColumnBuilder;

/**
 * Number of rows to have room for at first. The room doubles as rows are added: an agent with many fields and few records should take
 * little memory.
 */
export const firstRowsDefault = 1024;
const firstBytes = 16 * 1024;
/** From this many rows on, a column allocates room for a usual batch at once, because growing copies all previous values. */
const busyRows = 4096;
/** A larger array is not kept for the next batch. A row group of common lines takes less. */
const keptBytesMax = 16 * 1024 * 1024;
/** A string column begins with room for at most this many bytes, however many the last batch had. */
const expectedBytesMax = 4 * 1024 * 1024;
/** Factor by which room is larger than that of the values so far, for more or longer values. */
export const expectedGrowth = 1.125;
/** Offsets have 32 bits. */
const columnBytesMax = 2 ** 32 - 1;

/** Makes a builder for a column of `type`. */
export function makeColumnBuilder(type: FieldType, state: BuilderState): ColumnBuilder {
  switch (typeFacts[type].column) {
    case 'int64':
      return new IntColumnBuilder(state);
    case 'float64':
      return new FloatColumnBuilder(state);
    case 'bytes':
      return new StringColumnBuilder(state);
  }
}

/** The part that builders of all types share: the number of rows that were set, and their nulls. */
abstract class RowsBuilder {
  protected readonly state: BuilderState;
  protected rowsSet = 0;
  protected rowsMax = 0;
  /** One bit per row, 1 = present. Null before the first null, because most columns have none. */
  protected bits: Uint8Array | null = null;

  constructor(state: BuilderState) {
    this.state = state;
  }

  /** Bytes of memory for rows, used or not. */
  abstract get memoryBytes(): number;

  /** Starts over in the same arrays. The results of `take` must not be used any more. */
  clear(): void {
    this.rowsSet = 0;
    this.bits = null;
  }

  /** Starts over in new arrays. The results of `take` keep the old ones. */
  drop(): void {
    this.rowsSet = 0;
    this.bits = null;
    this.rowsMax = 0;
  }

  protected abstract growArrays(): void;

  /** Makes the rows [from, to), which ended without a value, empty. */
  protected abstract emptyRows(from: number, to: number): void;

  /** Makes room for `rows` rows. */
  protected reserve(rows: number): void {
    if (rows <= this.rowsMax) return;
    const { firstRows, usual } = this.state;
    const isBusy = usual !== null && rows >= busyRows && rows <= usual.rows;
    this.rowsMax = isBusy ? usual.rows : Math.max(firstRows, this.rowsMax * 2, rows);
    this.growArrays();
    const { bits } = this;
    if (bits === null) return;
    this.bits = new Uint8Array(bitmapBytes(this.rowsMax));
    this.bits.set(bits);
  }

  /** Makes the rows before `row` that were not set null. There must be room for them. */
  protected endRowsBefore(row: number): void {
    if (this.rowsSet >= row) return;
    this.emptyRows(this.rowsSet, row);
    for (let missing = this.rowsSet; missing < row; missing++) this.markNull(missing);
    this.rowsSet = row;
  }

  protected markNull(row: number): void {
    if (this.bits === null) {
      this.bits = new Uint8Array(bitmapBytes(this.rowsMax)).fill(255, 0, row >> 3);
      this.bits[row >> 3] = (1 << (row & 7)) - 1;
    }
    this.bits[row >> 3]! &= ~(1 << (row & 7));
  }

  protected markPresent(row: number): void {
    if (this.bits !== null) this.bits[row >> 3]! |= 1 << (row & 7);
  }

  /**
   * Marks the rows from `row` on as present or null: presence[from, to) has one byte per row, where 0 is null. Without `presence` all are
   * present.
   */
  protected markRows(presence: Uint8Array | null, from: number, to: number, row: number): void {
    this.rowsSet = row + to - from;
    if (this.bits === null && presence === null) return;
    for (let i = from; i < to; i++, row++) {
      if (presence !== null && presence[i] === 0) this.markNull(row);
      else this.markPresent(row);
    }
  }

  /** The bitmap of the first `rows` rows. It is a copy, because the bits of later rows are still being set. */
  protected takeValidity(rows: number): Validity {
    if (this.bits === null) return null;
    const taken = this.bits.slice(0, bitmapBytes(rows));
    taken.fill(0, (rows + 7) >> 3);
    if ((rows & 7) !== 0) taken[rows >> 3]! &= (1 << (rows & 7)) - 1;
    return isFull(taken, rows) ? null : taken;
  }
}

function isFull(bits: Uint8Array, rows: number): boolean {
  const wholeBytes = rows >> 3;
  for (let i = 0; i < wholeBytes; i++) if (bits[i] !== 255) return false;
  return (rows & 7) === 0 || bits[wholeBytes] === (1 << (rows & 7)) - 1;
}

/** One byte for each row of a column, 0 for null; null where all rows are present. */
function presenceOf({ validity, length }: PlainColumn): Uint8Array | null {
  if (validity === null) return null;
  const presence = new Uint8Array(length);
  spreadBits(validity, length, presence);
  return presence;
}

/** Builds columns of 8-byte values. The slots of rows that were not set are 0. */
abstract class NumberColumnBuilder extends RowsBuilder {
  protected abstract readonly valueKind: NumberColumn['kind'];
  /** Two 32-bit halves for each value, low half first. Storing them allocates nothing, unlike storing a bigint. */
  protected halves: Int32Array = new Int32Array(0);

  get memoryBytes(): number {
    return this.halves.byteLength + (this.bits?.length ?? 0);
  }

  setNull(): void {
    const { rows } = this.state;
    this.begin(rows);
    this.halves[2 * rows] = 0;
    this.halves[2 * rows + 1] = 0;
    this.markNull(rows);
  }

  /**
   * Sets the rows from `row` on to the 8-byte values `from` to `to` (exclusive) of `halves`; to null where `presence` is 0. None of these
   * rows may have been set.
   */
  appendRows(halves: Int32Array, presence: Uint8Array | null, from: number, to: number, row: number): void {
    this.reserve(row + to - from);
    this.endRowsBefore(row);
    copyWords(halves, 2 * from, 2 * to, this.halves, 2 * row);
    this.markRows(presence, from, to, row);
  }

  /** Appends the values of a column of the same kind to the ended rows. */
  append(column: PlainColumn): void {
    assert(column.kind === this.valueKind, 'numbers are appended to numbers of their kind');
    this.appendRows(halvesOf(column.values), presenceOf(column), 0, column.length, this.state.rows);
  }

  /** Drops the value set since the last row ended. */
  cancelRow(): void {
    const row = this.state.rows;
    if (this.rowsSet <= row) return;
    this.rowsSet = row;
    this.halves[2 * row] = 0;
    this.halves[2 * row + 1] = 0;
  }

  /** The first `rows` rows. They do not change when further rows are set. */
  take(rows: number): NumberColumn {
    this.reserve(rows);
    this.endRowsBefore(rows);
    const { buffer, byteOffset } = this.halves;
    return numberColumn(this.valueKind, rows, buffer, byteOffset, this.takeValidity(rows));
  }

  override clear(): void {
    this.halves.fill(0, 0, 2 * this.rowsSet);
    super.clear();
  }

  override drop(): void {
    this.halves = new Int32Array(0);
    super.drop();
  }

  /** Begins to set row `row`. */
  protected begin(row: number): void {
    if (row >= this.rowsMax) this.reserve(row + 1);
    if (this.rowsSet < row) this.endRowsBefore(row);
    this.rowsSet = row + 1;
  }

  protected growArrays(): void {
    const { halves } = this;
    const { arena } = this.state;
    const { buffer, byteOffset } = arena(8 * this.rowsMax);
    this.halves = new Int32Array(buffer, byteOffset, 2 * this.rowsMax);
    if (arena !== heap) this.halves.fill(0, halves.length);
    this.halves.set(halves);
  }

  protected emptyRows(): void {
    // Their slots are 0 already.
  }
}

/** Builds `int`, `time` and `bool` columns. */
export class IntColumnBuilder extends NumberColumnBuilder {
  readonly kind = 'int';
  protected readonly valueKind = 'int64';

  /** Sets a safe integer. */
  setNumber(value: number): void {
    this.setHalves(value | 0, Math.floor(value / 0x1_0000_0000));
  }

  setBigInt(value: bigint): void {
    this.setHalves(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** Sets `high * 2^32 + low`, where `low` is unsigned. Both are taken modulo 2^32. */
  setHalves(low: number, high: number): void {
    const { rows } = this.state;
    this.begin(rows);
    this.halves[2 * rows] = low;
    this.halves[2 * rows + 1] = high;
    this.markPresent(rows);
  }
}

/** Builds `float` columns. */
export class FloatColumnBuilder extends NumberColumnBuilder {
  readonly kind = 'float';
  protected readonly valueKind = 'float64';
  #values: Float64Array = new Float64Array(0);

  /** Sets a number. NaN and infinities become null. */
  setNumber(value: number): void {
    // The difference is NaN for NaN and for both infinities.
    if (value - value !== 0) {
      this.setNull();
      return;
    }
    const { rows } = this.state;
    this.begin(rows);
    this.#values[rows] = value;
    this.markPresent(rows);
  }

  override drop(): void {
    this.#values = new Float64Array(0);
    super.drop();
  }

  protected override growArrays(): void {
    super.growArrays();
    this.#values = new Float64Array(this.halves.buffer, this.halves.byteOffset, this.rowsMax);
  }
}

const encoder = new TextEncoder();

/** Builds `string` columns: UTF-8 bytes and offsets. */
export class StringColumnBuilder extends RowsBuilder {
  readonly kind = 'string';
  #offsets: Uint32Array = new Uint32Array(1);
  #bytes: Uint8Array = new Uint8Array(0);
  /**
   * Number of bytes to begin with in an arena other than the heap: somewhat more than the last batch took. Growing an array in lent memory
   * wastes its old range.
   */
  #bytesExpected = 0;

  /** Number of UTF-8 bytes of the rows set so far. */
  get bytesUsed(): number {
    return this.#offsets[this.rowsSet]!;
  }

  get memoryBytes(): number {
    return this.#offsets.byteLength + this.#bytes.length + (this.bits?.length ?? 0);
  }

  /** Sets a JavaScript string. An unpaired surrogate becomes U+FFFD. */
  setString(text: string): void {
    const target = this.begin(text.length * 3);
    const at = this.beginOffset;
    const length = text.length;
    let i = 0;
    if (length < 24) {
      // For so few characters, a loop takes less time than a call of the encoder.
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
   * Sets the value to bytes[start, end). Sequences that are not UTF-8 become U+FFFD, as in the WHATWG decoder. Returns the number of
   * replacements.
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
    this.commit(this.beginOffset);
    this.markNull(this.state.rows);
  }

  /**
   * Begins the row's value for a caller that writes the bytes itself. Returns the array to write to, from `beginOffset` on, with room for
   * `bytesMax` bytes. Drops the previous value of the row. The caller must end with `commit`; until then no other method may be called.
   */
  begin(bytesMax: number): Uint8Array {
    const row = this.state.rows;
    if (row >= this.rowsMax) this.reserve(row + 1);
    if (this.rowsSet < row) this.endRowsBefore(row);
    const needed = this.#offsets[row]! + bytesMax;
    if (needed > this.#bytes.length) this.#growBytes(needed, row + 1);
    return this.#bytes;
  }

  /** Offset of the row's value in the array that `begin` returned. */
  get beginOffset(): number {
    return this.#offsets[this.state.rows]!;
  }

  /** Ends the value at offset `endOffset` of the array. Its bytes must be UTF-8. */
  commit(endOffset: number): void {
    const row = this.state.rows;
    this.rowsSet = row + 1;
    this.#offsets[row + 1] = endOffset;
    this.markPresent(row);
  }

  /** Like `appendRows` of an `IntColumnBuilder`. Value i is bytes[offsets[i], offsets[i + 1]), which must be UTF-8. */
  appendRows(
    bytes: Uint8Array,
    offsets: Uint32Array,
    presence: Uint8Array | null,
    from: number,
    to: number,
    row: number,
  ): void {
    const rows = row + to - from;
    this.reserve(rows);
    this.endRowsBefore(row);
    const start = offsets[from]!;
    const end = offsets[to]!;
    const at = this.#offsets[row]!;
    const needed = at + end - start;
    if (needed > this.#bytes.length) this.#growBytes(needed, rows);
    if (this.state.arena === heap) copyFromShared(bytes.subarray(start, end), this.#bytes, at);
    else copyArray(bytes, start, end, this.#bytes, at);
    copyShifted(offsets, from + 1, to + 1, at - start, this.#offsets, row + 1);
    this.markRows(presence, from, to, row);
  }

  /** Appends the values of a string column to the ended rows. */
  append(column: PlainColumn): void {
    assert(column.kind === 'bytes', 'strings are appended to strings');
    const { bytes, offsets, length } = column;
    this.appendRows(bytes, offsets, presenceOf(column), 0, length, this.state.rows);
  }

  /** Drops the value set since the last row ended. */
  cancelRow(): void {
    if (this.rowsSet > this.state.rows) this.rowsSet = this.state.rows;
  }

  /** The first `rows` rows. They do not change when further rows are set. */
  take(rows: number): BytesColumn {
    this.reserve(rows);
    this.endRowsBefore(rows);
    return {
      kind: 'bytes',
      length: rows,
      offsets: this.#offsets.subarray(0, rows + 1),
      bytes: this.#bytes.subarray(0, this.#offsets[rows]),
      validity: this.takeValidity(rows),
    };
  }

  override clear(): void {
    this.#expect();
    // A few long values may have made the array large. It is kept only where batches are known to be large.
    if (this.#bytes.length > keptBytesMax && this.state.usual === null) this.#bytes = new Uint8Array(0);
    super.clear();
  }

  override drop(): void {
    this.#expect();
    this.#offsets = new Uint32Array(1);
    this.#bytes = new Uint8Array(0);
    super.drop();
  }

  protected growArrays(): void {
    const offsets = this.#offsets;
    this.#offsets = uint32sOf(this.state.arena, this.rowsMax + 1);
    copyShifted(offsets, 0, this.rowsSet + 1, 0, this.#offsets, 0);
  }

  protected emptyRows(from: number, to: number): void {
    this.#offsets.fill(this.#offsets[from]!, from + 1, to + 1);
  }

  /** Remembers the bytes of the rows. Does nothing without rows: they have been remembered before. */
  #expect(): void {
    if (this.rowsSet > 0) this.#bytesExpected = Math.min(expectedBytesMax, this.bytesUsed * expectedGrowth);
  }

  /** Makes room for at least `needed` bytes, which are the bytes of `rows` rows. */
  #growBytes(needed: number, rows: number): void {
    if (needed > columnBytesMax)
      throw new LogstrataError('limit', 'a column has more bytes than 32-bit offsets can hold');
    const { arena, usual } = this.state;
    let capacity = Math.max(firstBytes, this.#bytes.length * 2, needed);
    if (usual !== null && rows >= busyRows && rows <= usual.rows) {
      const expected = Math.min(needed * (usual.rows / rows), usual.bytes);
      capacity = Math.ceil(expectedGrowth * Math.max(needed, expected));
    } else if (arena !== heap) {
      capacity = Math.max(capacity, Math.ceil(this.#bytesExpected));
    }
    const used = this.bytesUsed;
    const grown = arena(capacity);
    copyArray(this.#bytes, 0, used, grown, 0);
    this.#bytes = grown;
  }
}
