import type { FieldType } from '../core/schema.js';
import { typeFacts } from '../core/schema.js';
import { wordsPerSum } from '../kernels/numbers.js';
import { DistinctValues } from './distinct-values.js';
import type { FieldNumbers, GroupNumbers } from './group-numbers.js';
import { MagnitudeCounts, percentileOf } from './magnitude-counts.js';
import {
  percentOf,
  wantedFor,
  type NumberAnswer,
  type NumberFunction,
  type NumbersWanted,
} from './number-functions.js';

const cellsAtFirst = 16;
/** Bytes of a cell besides its numbers: its place in the map. */
const cellBytes = 48;
/** Above this a part of a sum is carried to the next one, so that doubles hold both exactly. */
const carryFrom = 2 ** 52;
const two32 = 2 ** 32;

/**
 * The numbers of fields so far, by cell: the records of one bucket of time and one value. A key names the cell. Numbers have to be added in
 * an order that depends only on the records, because sums of doubles do.
 */
export class NumberTally {
  readonly functions: readonly NumberFunction[];
  readonly wanted: NumbersWanted;
  readonly #cells = new Map<number, number>();
  readonly #fields: readonly FieldTally[];
  readonly #take: (bytes: number) => void;
  /** The memory that it uses. */
  bytes = 0;

  /** @param take as for `DistinctValues`; it also limits the number of cells */
  constructor(
    types: readonly FieldType[],
    functions: readonly NumberFunction[],
    take: (bytes: number) => void,
  ) {
    this.functions = functions;
    this.wanted = wantedFor(functions);
    this.#take = (bytes) => {
      take(bytes);
      this.bytes += bytes;
    };
    this.#fields = types.map((type) => new FieldTally(type, this.wanted, this.#take));
  }

  /** Number of cells. */
  get size(): number {
    return this.#cells.size;
  }

  /** Whether an answer had an estimate of `distinct`. */
  get hasEstimates(): boolean {
    return this.#fields.some((field) => field.hasEstimates);
  }

  /** Adds the numbers of rows. `keyOf` gives the key of the cell that a group belongs to. */
  add({ count, groups, fields }: GroupNumbers, keyOf: (group: number) => number): void {
    const cells = new Int32Array(count).fill(-1);
    const cellOf = (group: number): number => {
      if (cells[group] === -1) cells[group] = this.#cellOf(keyOf(groups === null ? group : groups[group]!));
      return cells[group]!;
    };
    for (const [i, numbers] of fields.entries()) if (numbers !== null) this.#fields[i]!.add(numbers, cellOf);
  }

  #cellOf(key: number): number {
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      this.#take(cellBytes);
      cell = this.#cells.size;
      this.#cells.set(key, cell);
    }
    return cell;
  }

  /** The keys of the cells, in the order in which they were added. */
  keys(): Iterable<number> {
    return this.#cells.keys();
  }

  /** The numbers of the records of some cells together: for each field those of `functions`. */
  answer(keys: readonly number[]): readonly (readonly NumberAnswer[])[] {
    const cells = keys.map((key) => this.#cells.get(key)).filter((cell) => cell !== undefined);
    return this.#fields.map((field) => field.answer(cells, this.functions));
  }
}

/** The numbers of one field, by cell. */
class FieldTally {
  readonly #isInteger: boolean;
  readonly #take: (bytes: number) => void;
  /** The count, and three parts of the sum, each of 32 bits above the one before. The sum of floats is the first part. */
  #sums = new Float64Array(4 * cellsAtFirst);
  #bounds: BigInt64Array | Float64Array;
  readonly #magnitudes: MagnitudeCounts | null;
  readonly #distinct: DistinctValues[] = [];
  hasEstimates = false;

  constructor(type: FieldType, { magnitudes }: NumbersWanted, take: (bytes: number) => void) {
    this.#isInteger = typeFacts[type].column === 'int64';
    this.#take = take;
    this.#bounds = this.#isInteger ? new BigInt64Array(2 * cellsAtFirst) : new Float64Array(2 * cellsAtFirst);
    this.#magnitudes = magnitudes ? new MagnitudeCounts(take) : null;
    take(this.#sums.byteLength + this.#bounds.byteLength);
  }

  add({ sums: found, magnitudes, hashes: ofHashes }: FieldNumbers, cellOf: (group: number) => number): void {
    if (found !== null) {
      const { summed, sums } = found;
      const bounds = this.#isInteger ? new BigInt64Array(sums.buffer, sums.byteOffset, sums.length) : sums;
      for (const [i, group] of summed.entries()) this.#addSum(cellOf(group), sums, bounds, i * wordsPerSum);
    }
    if (magnitudes !== null) {
      const { pairs, counts } = magnitudes;
      for (let i = 0; i < counts.length; i++)
        this.#magnitudes!.add(cellOf(pairs[2 * i + 1]!), pairs[2 * i]!, counts[i]!);
    }
    if (ofHashes === null) return;
    const { hashed, hashes } = ofHashes;
    for (let i = 0; i < hashed.length; i++)
      (this.#distinct[cellOf(hashed[i]!)] ??= new DistinctValues(this.#take)).add(
        hashes[2 * i]!,
        hashes[2 * i + 1]!,
      );
  }

  #addSum(cell: number, sums: Float64Array, given: BigInt64Array | Float64Array, at: number): void {
    if (4 * cell >= this.#sums.length) this.#enlarge(cell);
    const own = this.#sums;
    const bounds = this.#bounds;
    if (own[4 * cell] === 0 || given[at + 3]! < bounds[2 * cell]!) bounds[2 * cell] = given[at + 3]!;
    if (own[4 * cell] === 0 || given[at + 4]! > bounds[2 * cell + 1]!) bounds[2 * cell + 1] = given[at + 4]!;
    own[4 * cell]! += sums[at]!;
    own[4 * cell + 1]! += sums[at + 1]!;
    own[4 * cell + 2]! += sums[at + 2]!;
    if (!this.#isInteger) return;
    for (let part = 4 * cell + 1; part < 4 * cell + 3; part++) {
      if (Math.abs(own[part]!) < carryFrom) continue;
      const carried = Math.trunc(own[part]! / two32);
      own[part]! -= carried * two32;
      own[part + 1]! += carried;
    }
  }

  #enlarge(cell: number): void {
    const cells = 2 ** (32 - Math.clz32(cell));
    const { length } = this.#sums;
    this.#take((4 * cells - length) * 12);
    const sums = new Float64Array(4 * cells);
    sums.set(this.#sums);
    this.#sums = sums;
    const bounds = this.#isInteger ? new BigInt64Array(2 * cells) : new Float64Array(2 * cells);
    bounds.set(this.#bounds as never);
    this.#bounds = bounds as BigInt64Array | Float64Array;
  }

  answer(cells: readonly number[], functions: readonly NumberFunction[]): readonly NumberAnswer[] {
    const summed = cells.filter((cell) => (this.#sums[4 * cell] ?? 0) > 0);
    const counted = this.#magnitudes?.of(summed) ?? [];
    const count = summed.reduce((sum, cell) => sum + this.#sums[4 * cell]!, 0);
    return functions.map((fn) => {
      if (fn === 'distinct') return this.#distinctOf(cells);
      if (count === 0) return null;
      const [least, greatest] = this.#boundsOf(summed);
      const sum = this.#sumOf(summed);
      if (fn === 'avg') return Number(sum) / count;
      if (fn === 'sum') return sum;
      if (fn === 'min') return positiveZero(least);
      if (fn === 'max') return positiveZero(greatest);
      const near = percentileOf(counted, percentOf(fn)!);
      // A value is between the bounds, and so is what is near it.
      const value = this.#isInteger ? BigInt(Math.round(near)) : near;
      return positiveZero(value < least ? least : value > greatest ? greatest : value);
    });
  }

  #boundsOf(cells: readonly number[]): [least: bigint | number, greatest: bigint | number] {
    let least: bigint | number = this.#bounds[2 * cells[0]!]!;
    let greatest: bigint | number = this.#bounds[2 * cells[0]! + 1]!;
    for (const cell of cells) {
      if (this.#bounds[2 * cell]! < least) least = this.#bounds[2 * cell]!;
      if (this.#bounds[2 * cell + 1]! > greatest) greatest = this.#bounds[2 * cell + 1]!;
    }
    return [least, greatest];
  }

  #sumOf(cells: readonly number[]): bigint | number {
    if (!this.#isInteger)
      return positiveZero(cells.reduce((sum, cell) => sum + this.#sums[4 * cell + 1]!, 0));
    return cells.reduce((sum, cell) => {
      const [low, middle, high] = this.#sums.subarray(4 * cell + 1, 4 * cell + 4);
      return sum + BigInt(low!) + (BigInt(middle!) << 32n) + (BigInt(high!) << 64n);
    }, 0n);
  }

  /** The number of different values; null where there are no values. */
  #distinctOf(cells: readonly number[]): number | null {
    const known = cells.map((cell) => this.#distinct[cell]).filter((values) => values !== undefined);
    const [first] = known;
    if (first === undefined) return null;
    const all = known.length === 1 ? first : new DistinctValues(() => {});
    if (all !== first) for (const values of known) all.addAll(values);
    this.hasEstimates ||= !all.isExact;
    return all.count();
  }
}

function positiveZero<T extends bigint | number>(value: T): T {
  return value === 0 ? (0 as T) : value;
}
