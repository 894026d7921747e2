import { createHash } from 'node:crypto';
import { halvesOf, isValid, type Column, type PlainColumn, type RecordBatch } from '../../columns/column.js';
import { positionToInt64 } from '../../terms/cursor.js';
import type { Field, Schema } from '../../terms/schema.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import { columnOfField, quotedName } from './far-sql.js';
import { murmur32 } from './murmur.js';

/**
 * What the values of rows add up to, modulo 2^64: their number, their positions, and of each field how many values it has, and these: integers
 * as they are, doubles by their bits, texts by a hash. Sums do not depend on the order, and any server can make them.
 */
export class FarChecksum {
  #rows = 0n;
  #cursors = 0n;
  readonly #present: bigint[];
  readonly #sums: bigint[];

  constructor(readonly schema: Schema) {
    this.#present = schema.fields.map(() => 0n);
    this.#sums = schema.fields.map(() => 0n);
  }

  /** Adds rows, which have these positions one after the other. */
  add({ columns, length }: RecordBatch, runs: readonly OrdinalRun[]): void {
    this.#rows += BigInt(length);
    for (const { partition, firstOrdinal: ordinal, rows } of runs) {
      const first = BigInt.asUintN(64, positionToInt64({ partition, ordinal }));
      const count = BigInt(rows);
      this.#cursors += first * count + (count * (count - 1n)) / 2n;
    }
    columns.forEach((column, i) => {
      const { present, sum } = sumOf(column);
      this.#present[i]! += BigInt(present);
      this.#sums[i]! += sum;
    });
  }

  /** The sums as `checksumOf` makes them of a server's answer. */
  value(): string {
    const sums = this.#present.flatMap((present, i) => [present, this.#sums[i]!]);
    return digest([this.#rows, this.#cursors, ...sums]);
  }
}

/** The expressions that a server is asked for, in the order of `FarChecksum`. */
export function checksumExpressions({ fields }: Schema): string[] {
  const ofFields = fields.flatMap((field) => {
    const name = quotedName(columnOfField(field));
    return [`count(${name})`, `sum(${summand(field, name)})`];
  });
  return ['count()', 'sum(_cursor)', ...ofFields];
}

function summand({ type }: Field, name: string): string {
  if (type === 'string') return `toUInt64(murmurHash3_32(${name}))`;
  return type === 'float' ? `reinterpretAsInt64(reinterpretAsString(${name}))` : `toInt64(${name})`;
}

/** Of the numbers that a server has answered; a sum of no values is `\N`. Undefined for what are no numbers. */
export function checksumOf(answer: readonly string[]): string | undefined {
  const numbers: bigint[] = [];
  for (const text of answer) {
    if (text !== '\\N' && !/^-?\d{1,20}$/.test(text)) return undefined;
    numbers.push(text === '\\N' ? 0n : BigInt(text));
  }
  return digest(numbers);
}

function digest(numbers: readonly bigint[]): string {
  const text = numbers.map((number) => BigInt.asUintN(64, number)).join(' ');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Partial sums of 32 bits each are exact doubles for this many rows. */
const exactRows = 2 ** 20;

/** The number of each entry as two halves, the low one first: of texts their hashes. */
function summandsOf(column: PlainColumn): Uint32Array {
  if (column.kind !== 'bytes') return new Uint32Array(halvesOf(column.values));
  const { bytes, offsets, length } = column;
  const halves = new Uint32Array(2 * length);
  for (let entry = 0; entry < length; entry++)
    halves[2 * entry] = murmur32(bytes, offsets[entry]!, offsets[entry + 1]!);
  return halves;
}

function sumOf(column: Column): { present: number; sum: bigint } {
  const { validity, length } = column;
  const isCoded = column.kind === 'dictionary';
  const halves = summandsOf(isCoded ? column.values : column);
  let present = 0;
  let sum = 0n;
  for (let start = 0; start < length; start += exactRows) {
    const end = Math.min(length, start + exactRows);
    let low = 0;
    let high = 0;
    for (let row = start; row < end; row++) {
      if (validity !== null && !isValid(validity, row)) continue;
      const entry = isCoded ? column.codes[row]! : row;
      present++;
      low += halves[2 * entry]!;
      high += halves[2 * entry + 1]!;
    }
    sum += BigInt(low) + (BigInt(high) << 32n);
  }
  return { present, sum };
}
