import { createHash } from 'node:crypto';
import { halvesOf, isValid, type Column, type PlainColumn, type RecordBatch } from '../columns/column.js';
import { positionToInt64 } from '../core/cursor.js';
import { typeFacts, type Field, type Schema } from '../core/schema.js';
import type { OrdinalRun } from '../store/manifest/manifest.js';
import { columnOfField, quotedName } from './far-sql.js';

/**
 * A checksum over rows that any server can compute as well. It is made of sums modulo 2^64: the number of rows, the sum of their positions,
 * and for each field the number of values and the sum of the values (integers as they are, doubles as their bits, texts as a MurmurHash3).
 * Sums do not depend on the order of the rows. The sums are hashed with SHA-256.
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

  /** Adds rows with consecutive positions in `runs`. */
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

  /** The checksum, as 16 hexadecimal digits. Equals `checksumOf` of a server's answer for the same rows. */
  value(): string {
    const sums = this.#present.flatMap((present, i) => [present, this.#sums[i]!]);
    return digest([this.#rows, this.#cursors, ...sums]);
  }
}

/** The SQL expressions that compute the sums of `FarChecksum`, in its order. */
export function checksumExpressions({ fields }: Schema): string[] {
  const ofFields = fields.flatMap((field) => {
    const name = quotedName(columnOfField(field));
    return [`count(${name})`, `sum(${summand(field, name)})`];
  });
  return ['count()', 'sum(_cursor)', ...ofFields];
}

function summand({ type }: Field, name: string): string {
  const { column } = typeFacts[type];
  if (column === 'bytes') return `toUInt64(murmurHash3_32(${name}))`;
  return column === 'float64' ? `reinterpretAsInt64(reinterpretAsString(${name}))` : `toInt64(${name})`;
}

/** The checksum of the sums in a server's answer. A sum over no values is `\N` and counts as 0. Undefined if something is not a number. */
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

/** Sums of 32-bit halves are exact as doubles for up to this many rows. */
const exactRows = 2 ** 20;

/** For each entry of the column the number that is summed, as two halves, low half first. For texts it is their hash. */
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

/** MurmurHash3 (x86, 32 bits, seed 0) of bytes [from, to). Same as ClickHouse's `murmurHash3_32`. Algorithm: Austin Appleby, SMHasher. */
export function murmur32(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0;
  const blocksEnd = to - ((to - from) & 3);
  for (let at = from; at < blocksEnd; at += 4) {
    const block = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    hash ^= scrambled(block);
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let at = to - 1; at >= blocksEnd; at--) rest = (rest << 8) | bytes[at]!;
  if (blocksEnd < to) hash ^= scrambled(rest);
  hash ^= to - from;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}
