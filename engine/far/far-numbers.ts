import { columnValue, type Column } from '../columns/column.js';
import { plainColumn } from '../columns/take.js';
import { typeFacts, type Field } from '../core/schema.js';
import { wordsPerSum, type Sums } from '../kernels/numbers.js';
import { hashColumn, type FieldNumbers } from '../numbers/group-numbers.js';
import { wantedFor, type NumberFunction } from '../numbers/number-functions.js';
import type { Tally } from '../scan/tally.js';
import type { FarCounted, FarNumbersQuestion } from './far-sql.js';

/** A question about the numbers of a field. */
export interface NumbersAsked {
  /** The place of the field among those of the query. */
  readonly place: number;
  readonly question: FarNumbersQuestion;
}

/** The answer to a question about numbers. */
export interface FarNumbers extends NumbersAsked {
  readonly counted: FarCounted;
  /** The columns of the answer after those of its groups. */
  readonly columns: readonly Column[];
}

/**
 * The questions about the numbers of fields; null where an answer would not be that of the rows, as for sums of floats.
 *
 * @param fields as stored; null where no row has a value, undefined where values would have to be converted
 */
export function numbersAsked(
  fields: readonly (Field | null | undefined)[],
  functions: readonly NumberFunction[],
): readonly NumbersAsked[] | null {
  const { sums, magnitudes, hashes } = wantedFor(functions);
  const areSummed = functions.includes('sum') || functions.includes('avg');
  const asked: NumbersAsked[] = [];
  for (const [place, field] of fields.entries()) {
    if (field === undefined) return null;
    if (field === null) continue;
    const { column, isBits } = typeFacts[field.type];
    if (areSummed && column === 'float64') return null;
    const by = magnitudes ? 'magnitude' : 'group';
    if (sums && column !== 'bytes' && isBits !== true) asked.push({ place, question: { field, by } });
    if (hashes) asked.push({ place, question: { field, by: 'value' } });
  }
  return asked;
}

/** Adds numbers to a tally. `keyOf` gives the key of the cell that a row of the answer belongs to. */
export function addNumbers(tally: Tally, numbers: FarNumbers, keyOf: (row: number) => number): void {
  const fields = [...new Array<null>(numbers.place).fill(null), numbersOf(numbers)];
  const count = numbers.counted.rows.length;
  tally.addNumbers({ codesOfRange: 1, groups: null, count, fields }, keyOf);
}

function numbersOf({ question, counted: { rows }, columns }: FarNumbers): FieldNumbers {
  if (question.by === 'value') {
    const hashes = hashColumn(plainColumn(columns[0]!));
    return { sums: null, magnitudes: null, hashes: { hashed: Uint32Array.from(rows.keys()), hashes } };
  }
  const sums = sumsOf(columns, rows);
  if (question.by === 'group') return { sums, magnitudes: null, hashes: null };
  const pairs = new Int32Array(2 * rows.length);
  for (let row = 0; row < rows.length; row++) {
    pairs[2 * row] = Number(columnValue(columns.at(-1)!, row));
    pairs[2 * row + 1] = row;
  }
  return { sums, magnitudes: { pairs, counts: Uint32Array.from(rows) }, hashes: null };
}

/** Above this, the high part of a sum is divided, because a tally adds it as a double. */
const partMax = 2n ** 51n;

/** The sums and bounds. A group with a large sum comes more than once, but with its rows only the first time. */
function sumsOf([least, greatest, low, high]: readonly Column[], rows: Float64Array): Sums {
  const summed: number[] = [];
  const parts: number[] = [];
  const isInteger = least!.kind === 'int64';
  for (let row = 0; row < rows.length; row++) {
    // Without groups there is one row even where no record has a value.
    if (rows[row] === 0) continue;
    const sum = isInteger ? BigInt(columnValue(low!, row)!) + (BigInt(columnValue(high!, row)!) << 32n) : 0n;
    let rest = sum >> 32n;
    for (let count = rows[row]!, own = sum & 0xffff_ffffn; ; count = 0, own = 0n) {
      const part = rest > partMax ? partMax : rest < -partMax ? -partMax : rest;
      summed.push(row);
      parts.push(count, Number(own), Number(part));
      rest -= part;
      if (rest === 0n) break;
    }
  }
  const sums = new Float64Array(summed.length * wordsPerSum);
  const bounds = isInteger ? new BigInt64Array(sums.buffer) : sums;
  for (const [i, row] of summed.entries()) {
    sums.set(parts.slice(3 * i, 3 * i + 3), i * wordsPerSum);
    bounds[i * wordsPerSum + 3] = columnValue(least!, row) as never;
    bounds[i * wordsPerSum + 4] = columnValue(greatest!, row) as never;
  }
  return { summed: Uint32Array.from(summed), sums };
}
