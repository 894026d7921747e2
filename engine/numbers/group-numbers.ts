import { rowGroupRowsMax } from '../core/limits.js';
import { withKeptScratch } from '../core/scratch.js';
import { isValid, type Column, type PlainColumn, type Validity } from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { andRange, bitmapBytes, countRange, flipRange, listRange } from '../kernels/bitmap.js';
import type { CountedRows } from '../kernels/count.js';
import {
  addCodes,
  countPairsOfGroups,
  gatherWords,
  groupRanges,
  groupsLength,
  sumsOf,
  type CountedPairs,
  type RangesOfRows,
  type Sums,
  wordsPerSum,
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

/** Bytes of the arguments of a kernel for each row: see `countPairsOfGroups`. */
const callBytesPerRow = 32;

/** Finds the numbers of the fields, for each group of the rows. */
export function numbersOfRows(rows: GroupedRows, fields: readonly NumberField[]): GroupNumbers {
  const { counted, time, starts, numbered, codes } = rows;
  const codesOfRange = codes + 1;
  const all = (starts.length + 1) * codesOfRange;
  const isOne = time === null && numbered === null;
  // Sums are found in ranges of a time directly. The pairs of magnitudes or hashes have to name groups.
  const areOnlySums = fields.every(({ wanted }) => !wanted.magnitudes && !wanted.hashes);
  const areRanges = numbered === null && time !== null && time.validity === null && starts.length > 0;
  const isDirect = areRanges && areOnlySums && all <= rowGroupRowsMax;
  const needsRoom = !(isOne || isDirect) || fields.some(({ column }) => column?.kind === 'dictionary');
  const length = needsRoom ? groupsLength(counted.to) : 0;
  // The groups stay in the kernels' memory, and so do numbers behind them whose column has a dictionary.
  return withKeptScratch(length * 12, length * callBytesPerRow, (kept) => {
    const { buffer, byteOffset } = kept ?? new Uint8Array(length * 12);
    const room = {
      int64: new BigInt64Array(buffer, byteOffset, length),
      float64: new Float64Array(buffer, byteOffset, length),
    };
    const written = (): Uint32Array =>
      groupsOf(rows, codesOfRange, new Uint32Array(buffer, byteOffset + length * 8, length).fill(0));
    const known = isOne ? null : isDirect ? { values: time.values, starts, codesOfRange } : written();
    // With more groups than rows, most have none.
    const isSparse = known instanceof Uint32Array && all > rowGroupRowsMax;
    const groups = isSparse ? renumber(counted, known) : null;
    const count = isOne ? 1 : (groups?.length ?? all);
    const numbers = fields.map((field) => numbersOf(field, rows, known, count, room));
    return { codesOfRange, groups, count, fields: numbers };
  });
}

/** The number of rows in each range, where the numbers tell it: those of a field that all rows have. */
export function countsOfRanges(
  { codesOfRange, groups, fields }: GroupNumbers,
  asked: readonly NumberField[],
  ranges: Uint32Array,
): boolean {
  const known = fields.filter((_, i) => asked[i]!.column?.validity === null);
  const found = known.map((field) => field?.sums ?? null).find((sums) => sums !== null);
  if (found === undefined || groups !== null) return false;
  for (const [i, group] of found.summed.entries())
    ranges[Math.floor(group / codesOfRange)]! += found.sums[i * wordsPerSum]!;
  return true;
}

/** Memory for the numbers of rows. */
type Room = Readonly<Record<'int64', BigInt64Array> & Record<'float64', Float64Array>>;

function groupsOf(
  { counted, count, time, starts, numbered, codes }: GroupedRows,
  codesOfRange: number,
  groups: Uint32Array,
): Uint32Array {
  if (time !== null && starts.length > 0) {
    const ranges = { values: time.values, starts, codesOfRange };
    groupRanges(ranges, present(counted, time.validity), groups);
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
  groups: Uint32Array | RangesOfRows | null,
  groupCount: number,
  room: Room,
): FieldNumbers | null {
  if (column === null) return null;
  const rows = present(counted, column.validity);
  const values = column.validity === null ? count : countRange(rows.bits, rows.from, rows.to);
  if (values === 0) return null;
  const numbers = wanted.sums ? numericOf(column, rows, room) : null;
  const listed = groups instanceof Uint32Array ? groups : null;
  return {
    sums: numbers && sumsOf(numbers, rows, groups, groupCount),
    magnitudes: numbers && wanted.magnitudes ? countPairsOfGroups(numbers, rows, listed, values) : null,
    hashes: wanted.hashes ? hashesOf(column, rows, listed, values) : null,
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
  const { pairs } = countPairsOfGroups(codes, rows, groups, count);
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
