import { rowGroupRowsMax } from '../core/limits.js';
import { withKeptScratch } from '../core/scratch.js';
import { isValid, type Column, type PlainColumn, type Validity } from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { andRange, bitmapBytes, countRange, flipRange, listRange } from '../kernels/bitmap.js';
import type { CountedRows } from '../kernels/count.js';
import {
  addCodes,
  countCodesOfGroups,
  countMagnitudes,
  gatherWords,
  groupRanges,
  groupsLength,
  sumsOf,
  type CountedPairs,
  type Sums,
} from '../kernels/numbers.js';
import { hashIntegers, hashStrings } from '../kernels/value-filter.js';
import type { NumbersWanted } from './number-functions.js';
import { numberedOf, type Numbered } from './numbered.js';

/** Rows of a row group that are counted, and what they are grouped by: ranges of a time, codes of a value, or both. */
export interface GroupedRows {
  readonly counted: CountedRows;
  /** Number of rows in `counted`. */
  readonly count: number;
  readonly time: { readonly values: BigInt64Array; readonly validity: Validity } | null;
  /** The starts of the ranges. Without `time`, all rows are in the only one, or in none. */
  readonly starts: BigInt64Array;
  readonly numbered: Numbered | null;
  /** Number of codes. Without `numbered`, all rows have the only one, or none. */
  readonly codes: number;
}

/** A field whose numbers are wanted. */
export interface NumberField {
  /** Null where no row has a value. */
  readonly column: Column | null;
  readonly wanted: NumbersWanted;
}

/**
 * The numbers of the rows of a row group, by group. A group is the number of its range times `codesOfRange`, plus its code. Behind the last range
 * comes that of the rows without a time, behind the last code that of the rows without a value.
 */
export interface GroupNumbers {
  readonly codesOfRange: number;
  /** The groups by number; null where the numbers are the groups themselves. */
  readonly groups: Uint32Array | null;
  /** Number of groups. */
  readonly count: number;
  /** For each field, null where no row has a value. */
  readonly fields: readonly (FieldNumbers | null)[];
}

/** The numbers of a field. What is not wanted is null. */
export interface FieldNumbers {
  readonly sums: Sums | null;
  /** The different pairs (magnitude, group). */
  readonly magnitudes: CountedPairs | null;
  /** The group of each hash, and the hashes as low and high half. */
  readonly hashes: { readonly hashed: Uint32Array; readonly hashes: Uint32Array } | null;
}

/** The arrays of the numbers. */
export function arraysOfNumbers({ groups, fields }: GroupNumbers): ArrayBufferView<ArrayBufferLike>[] {
  const ofFields = fields.flatMap((field) =>
    Object.values(field ?? {}).flatMap((part) => Object.values(part ?? {})),
  );
  return [...(groups === null ? [] : [groups]), ...(ofFields as ArrayBufferView<ArrayBufferLike>[])];
}

/** Bytes of the arguments of a kernel for each row: see `countMagnitudes`. */
const callBytesPerRow = 32;

/** Finds the numbers of the fields, for each group of the rows. */
export function numbersOfRows(rows: GroupedRows, fields: readonly NumberField[]): GroupNumbers {
  const length = groupsLength(rows.counted.to);
  // The groups stay in the kernels' memory, and so do numbers behind them whose column has a dictionary.
  return withKeptScratch(length * 12, length * callBytesPerRow, (kept) => {
    const { buffer, byteOffset } = kept ?? new Uint8Array(length * 12);
    return inRoom(rows, fields, {
      groups: new Uint32Array(buffer, byteOffset + length * 8, length).fill(0),
      int64: new BigInt64Array(buffer, byteOffset, length),
      float64: new Float64Array(buffer, byteOffset, length),
    });
  });
}

/** Memory for the groups and the numbers of rows. */
interface Room {
  readonly groups: Uint32Array;
  readonly int64: BigInt64Array;
  readonly float64: Float64Array;
}

function inRoom(rows: GroupedRows, fields: readonly NumberField[], room: Room): GroupNumbers {
  const codesOfRange = rows.codes + 1;
  const all = (rows.starts.length + 1) * codesOfRange;
  const isOne = rows.time === null && rows.numbered === null;
  const known = isOne ? null : groupsOf(rows, codesOfRange, room.groups);
  // With more groups than rows, most have none.
  const groups = known !== null && all > rowGroupRowsMax ? renumber(rows.counted, known) : null;
  const count = isOne ? 1 : (groups?.length ?? all);
  return {
    codesOfRange,
    groups,
    count,
    fields: fields.map((field) => numbersOf(field, rows, known, count, room)),
  };
}

function groupsOf(
  { counted, count, time, starts, numbered, codes }: GroupedRows,
  codesOfRange: number,
  groups: Uint32Array,
): Uint32Array {
  if (time !== null && starts.length > 0) {
    groupRanges(time.values, present(counted, time.validity), starts, codesOfRange, groups);
    for (const row of absent(counted, count, time.validity)) groups[row] = starts.length * codesOfRange;
  }
  if (numbered === null) return groups;
  addCodes(numbered.codes, counted, groups);
  for (const row of absent(counted, count, numbered.validity)) groups[row]! += codes - numbered.codes[row]!;
  return groups;
}

/** Numbers the groups that have rows, from 0, in place. Returns the group of each number. */
function renumber({ bits, from, to }: CountedRows, groups: Uint32Array): Uint32Array {
  const known = new Map<number, number>();
  for (let row = from; row < to; row++) {
    if (!isValid(bits, row)) continue;
    const number = known.get(groups[row]!) ?? known.size;
    known.set(groups[row]!, number);
    groups[row] = number;
  }
  return Uint32Array.from(known.keys());
}

/** The counted rows that are present in `validity`. */
export function present(counted: CountedRows, validity: Validity): CountedRows {
  if (validity === null) return counted;
  const { from, to } = counted;
  const bits = counted.bits.slice();
  andRange(bits, validity, from & ~7, to);
  return { bits, from, to };
}

function absent(counted: CountedRows, count: number, validity: Validity): Uint32Array {
  if (validity === null) return new Uint32Array(0);
  const { from, to } = counted;
  const nulls = new Uint8Array(bitmapBytes(to));
  nulls.set(validity.subarray(0, (to + 7) >> 3));
  flipRange(nulls, 0, to);
  andRange(nulls, counted.bits, 0, to);
  const rows = new Uint32Array(count);
  return rows.subarray(0, listRange(nulls, from, to, rows, 0));
}

function numbersOf(
  { column, wanted }: NumberField,
  { counted, count }: GroupedRows,
  groups: Uint32Array | null,
  groupCount: number,
  room: Room,
): FieldNumbers | null {
  if (column === null) return null;
  const rows = present(counted, column.validity);
  const values = column.validity === null ? count : countRange(rows.bits, rows.from, rows.to);
  if (values === 0) return null;
  const numbers = wanted.sums ? numericOf(column, rows, room) : null;
  return {
    sums: numbers && sumsOf(numbers, rows, groups, groupCount),
    magnitudes: numbers && wanted.magnitudes ? countMagnitudes(numbers, rows, groups, values) : null,
    hashes: wanted.hashes ? hashesOf(column, rows, groups, values) : null,
  };
}

/** The numbers of the rows. */
function numericOf(column: Column, rows: CountedRows, room: Room): BigInt64Array | Float64Array | null {
  const plain = column.kind === 'dictionary' ? column.values : column;
  if (plain.kind === 'bytes') return null;
  if (column.kind !== 'dictionary') return plain.values;
  const target = room[plain.kind];
  gatherWords(plain.values, column.codes, rows, target);
  return target;
}

function hashesOf(
  column: Column,
  rows: CountedRows,
  groups: Uint32Array | null,
  count: number,
): FieldNumbers['hashes'] {
  const { codes, firstRows } = numberedOf(column);
  const values = column.kind === 'dictionary' ? column.values : takeColumn(column, firstRows!);
  const ofCodes = hashColumn(values);
  const { pairs } = countCodesOfGroups(codes, rows, groups, count);
  const hashed = new Uint32Array(pairs.length / 2);
  const hashes = new Uint32Array(pairs.length);
  for (let i = 0; i < pairs.length; i += 2) {
    hashed[i / 2] = pairs[i + 1]!;
    hashes[i] = ofCodes[2 * pairs[i]!]!;
    hashes[i + 1] = ofCodes[2 * pairs[i]! + 1]!;
  }
  return { hashed, hashes };
}

/** The hash of each row's value, as low and high half. */
export function hashColumn(column: PlainColumn): Uint32Array {
  if (column.kind === 'bytes') return hashStrings(column.bytes, column.offsets, column.length);
  if (column.kind === 'int64') return hashIntegers(column.values, column.length);
  // −0 and +0 are one value.
  const values = column.values.map((value) => (value === 0 ? 0 : value));
  return hashIntegers(new BigInt64Array(values.buffer), column.length);
}
