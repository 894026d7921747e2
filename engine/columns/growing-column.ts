import { assert } from '../terms/assert.js';
import { isValid, type PlainColumn, type Validity } from './column.js';
import { LogstrataError } from '../terms/errors.js';
import { hotBytesMax, hotRowsMax } from '../terms/limits.js';
import { copyFromShared, copyShifted } from '../kernels/copy.js';
import type { ZoneMap } from './zone-map.js';
import { valueKinds, type FieldType } from '../terms/schema.js';
import { bitmapBytes } from '../kernels/bitmap.js';

const firstRows = 1024;
const firstBytes = 64 * 1024;

/** Scan kernels read whole vectors, past the last row. */
const slackBytes = 64;

/** Offsets are 32-bit. */
const stringBytesMax = 2 ** 32 - 1;

/** From so many rows on a column gets room for a full segment at once: it will be one soon, and growing copies all that is there. */
const busyRows = 4096;

/** Room for values that are somewhat longer than those so far. */
const lengthMargin = 9 / 8;

/** Capacity for at least `needed`, doubled from `capacity` so that appending costs constant time a row. */
function grownCapacity(capacity: number, needed: number): number {
  return Math.max(needed, 2 * capacity);
}

/** Capacity in rows for at least `needed`. Memory that is never written to takes no room in the machine. */
function rowCapacity(capacity: number, needed: number): number {
  return needed >= busyRows && needed <= hotRowsMax ? hotRowsMax : grownCapacity(capacity, needed);
}

/** Capacity in bytes for the strings of `rows` rows, which take `needed`. */
function byteCapacity(capacity: number, needed: number, rows: number): number {
  if (rows < busyRows || rows > hotRowsMax) return grownCapacity(capacity, needed);
  const expected = Math.min(needed * (hotRowsMax / rows), hotBytesMax);
  return Math.ceil(lengthMargin * Math.max(needed, expected));
}

/** Sets the bits [from, to). */
function setBits(bits: Uint8Array, from: number, to: number): void {
  const firstWhole = Math.min(to, (from + 7) & ~7);
  for (let bit = from; bit < firstWhole; bit++) bits[bit >> 3]! |= 1 << (bit & 7);
  const wholeTo = Math.max(firstWhole, to & ~7);
  bits.fill(0xff, firstWhole >> 3, wholeTo >> 3);
  for (let bit = wholeTo; bit < to; bit++) bits[bit >> 3]! |= 1 << (bit & 7);
}

/** Nulls of a column that grows. Bits are kept only from the first null on. */
class GrowingValidity {
  nullCount = 0;
  #bits = new Uint8Array(bitmapBytes(firstRows));
  #firstNull = Infinity;

  get memoryBytes(): number {
    return this.#bits.length;
  }

  clear(): void {
    this.nullCount = 0;
    this.#bits.fill(0);
    this.#firstNull = Infinity;
  }

  append(validity: Validity, rows: number, length: number): void {
    this.#grow(rows + length);
    if (validity === null) {
      setBits(this.#bits, rows, rows + length);
      return;
    }
    for (let i = 0; i < length; i++) {
      const row = rows + i;
      if (isValid(validity, i)) {
        this.#bits[row >> 3]! |= 1 << (row & 7);
      } else {
        this.nullCount++;
        if (this.#firstNull === Infinity) this.#firstNull = row;
      }
    }
  }

  /** The bits of the first `rows` rows; a copy, because the last byte goes on being filled. */
  take(rows: number): Validity {
    if (this.#firstNull >= rows) return null;
    const bits = new Uint8Array(bitmapBytes(rows));
    const bytes = (rows + 7) >> 3;
    bits.set(this.#bits.subarray(0, bytes));
    if (rows % 8 !== 0) bits[bytes - 1]! &= (1 << (rows % 8)) - 1;
    return bits;
  }

  #grow(rows: number): void {
    if (bitmapBytes(rows) <= this.#bits.length) return;
    const larger = new Uint8Array(bitmapBytes(rowCapacity(this.#bits.length * 8, rows)));
    larger.set(this.#bits);
    this.#bits = larger;
  }
}

/**
 * A column in memory that rows are appended to. What `take` gave stays as it was: appending writes behind it, or into a
 * larger array.
 */
export interface GrowingColumn {
  append(column: PlainColumn, rows: number): void;
  /** The first `rows` rows, sharing memory. */
  take(rows: number): PlainColumn;
  /** Bounds over all `rows` rows there are. */
  zone(rows: number): ZoneMap;
  /** Forgets all rows and keeps the memory for others: nobody may read what `take` gave any more. */
  clear(): void;
  /** Memory for rows, used or not. */
  readonly memoryBytes: number;
}

/** An empty column in the layout of `type`. */
export function makeGrowingColumn(type: FieldType): GrowingColumn {
  switch (valueKinds[type]) {
    case 'int64':
      return new GrowingInts();
    case 'float64':
      return new GrowingFloats();
    case 'bytes':
      return new GrowingStrings();
  }
}

class GrowingInts implements GrowingColumn {
  readonly #validity = new GrowingValidity();
  #values = new BigInt64Array(firstRows + slackBytes / 8);
  #min: bigint | null = null;
  #max: bigint | null = null;

  append(column: PlainColumn, rows: number): void {
    assert(column.kind === 'int64', 'integers are appended to integers');
    const length = column.length;
    const capacity = this.#values.length - slackBytes / 8;
    if (rows + length > capacity) {
      const larger = new BigInt64Array(rowCapacity(capacity, rows + length) + slackBytes / 8);
      larger.set(this.#values.subarray(0, rows));
      this.#values = larger;
    }
    this.#values.set(column.values.subarray(0, length), rows);
    this.#validity.append(column.validity, rows, length);
    const halves = new Int32Array(column.values.buffer, column.values.byteOffset, length * 2);
    const extremes = extremeRows(halves, column.validity, length);
    if (extremes === null) return;
    const min = column.values[extremes[0]]!;
    const max = column.values[extremes[1]]!;
    if (this.#min === null || min < this.#min) this.#min = min;
    if (this.#max === null || max > this.#max) this.#max = max;
  }

  take(rows: number): PlainColumn {
    const values = this.#values.subarray(0, rows);
    return { kind: 'int64', length: rows, values, validity: this.#validity.take(rows) };
  }

  zone(rows: number): ZoneMap {
    return { nullCount: this.#validity.nullCount, rows, min: this.#min, max: this.#max };
  }

  clear(): void {
    this.#validity.clear();
    this.#min = null;
    this.#max = null;
  }

  get memoryBytes(): number {
    return this.#values.byteLength + this.#validity.memoryBytes;
  }
}

/** Rows of the least and the greatest integer that is present, or null. Compares halves, because reading a bigint may allocate one. */
function extremeRows(
  halves: Int32Array,
  validity: Validity,
  length: number,
): readonly [number, number] | null {
  let first = 0;
  while (first < length && !isValid(validity, first)) first++;
  if (first === length) return null;
  let least = first;
  let leastHigh = halves[2 * first + 1]!;
  let leastLow = halves[2 * first]! >>> 0;
  let greatest = first;
  let greatestHigh = leastHigh;
  let greatestLow = leastLow;
  for (let row = first + 1; row < length; row++) {
    if (validity !== null && !isValid(validity, row)) continue;
    const high = halves[2 * row + 1]!;
    const low = halves[2 * row]! >>> 0;
    if (high < leastHigh || (high === leastHigh && low < leastLow)) {
      least = row;
      leastHigh = high;
      leastLow = low;
    } else if (high > greatestHigh || (high === greatestHigh && low > greatestLow)) {
      greatest = row;
      greatestHigh = high;
      greatestLow = low;
    }
  }
  return [least, greatest];
}

class GrowingFloats implements GrowingColumn {
  readonly #validity = new GrowingValidity();
  #values = new Float64Array(firstRows + slackBytes / 8);
  #min = Infinity;
  #max = -Infinity;

  append(column: PlainColumn, rows: number): void {
    assert(column.kind === 'float64', 'floats are appended to floats');
    const length = column.length;
    const capacity = this.#values.length - slackBytes / 8;
    if (rows + length > capacity) {
      const larger = new Float64Array(rowCapacity(capacity, rows + length) + slackBytes / 8);
      larger.set(this.#values.subarray(0, rows));
      this.#values = larger;
    }
    this.#values.set(column.values.subarray(0, length), rows);
    this.#validity.append(column.validity, rows, length);
    for (let i = 0; i < length; i++) {
      if (!isValid(column.validity, i)) continue;
      const value = column.values[i]!;
      if (value < this.#min) this.#min = value;
      if (value > this.#max) this.#max = value;
    }
  }

  take(rows: number): PlainColumn {
    const values = this.#values.subarray(0, rows);
    return { kind: 'float64', length: rows, values, validity: this.#validity.take(rows) };
  }

  zone(rows: number): ZoneMap {
    const isEmpty = this.#min > this.#max;
    return {
      nullCount: this.#validity.nullCount,
      rows,
      min: isEmpty ? null : this.#min,
      max: isEmpty ? null : this.#max,
    };
  }

  clear(): void {
    this.#validity.clear();
    this.#min = Infinity;
    this.#max = -Infinity;
  }

  get memoryBytes(): number {
    return this.#values.byteLength + this.#validity.memoryBytes;
  }
}

class GrowingStrings implements GrowingColumn {
  readonly #validity = new GrowingValidity();
  #offsets = new Uint32Array(firstRows + 1 + slackBytes / 4);
  #bytes = new Uint8Array(firstBytes);

  append(column: PlainColumn, rows: number): void {
    assert(column.kind === 'bytes', 'strings are appended to strings');
    const length = column.length;
    this.#growOffsets(rows + length);
    const first = column.offsets[0]!;
    const last = column.offsets[length]!;
    const start = this.#offsets[rows]!;
    this.#growBytes(start, last - first, rows + length);
    copyFromShared(column.bytes.subarray(first, last), this.#bytes, start);
    const shift = start - first;
    copyShifted(column.offsets, 1, length + 1, shift, this.#offsets, rows + 1);
    this.#validity.append(column.validity, rows, length);
  }

  take(rows: number): PlainColumn {
    const offsets = this.#offsets.subarray(0, rows + 1);
    return { kind: 'bytes', length: rows, offsets, bytes: this.#bytes, validity: this.#validity.take(rows) };
  }

  /** Without bounds: what is hot is in memory, and searching it costs little. */
  zone(rows: number): ZoneMap {
    return { nullCount: this.#validity.nullCount, rows, min: null, max: null };
  }

  clear(): void {
    this.#validity.clear();
  }

  get memoryBytes(): number {
    return this.#offsets.byteLength + this.#bytes.length + this.#validity.memoryBytes;
  }

  #growOffsets(rows: number): void {
    const others = 1 + slackBytes / 4;
    const capacity = this.#offsets.length - others;
    if (rows <= capacity) return;
    const larger = new Uint32Array(rowCapacity(capacity, rows) + others);
    larger.set(this.#offsets);
    this.#offsets = larger;
  }

  #growBytes(start: number, length: number, rows: number): void {
    if (start + length > stringBytesMax) {
      throw new LogstrataError('limit', 'a hot column has more bytes than 32-bit offsets can hold');
    }
    const needed = start + length + slackBytes;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(byteCapacity(this.#bytes.length, needed, rows));
    larger.set(this.#bytes.subarray(0, start));
    this.#bytes = larger;
  }
}
