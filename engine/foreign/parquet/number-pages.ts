import { halvesOf, type NumberColumn } from '../../columns/column.js';
import { takeColumn } from '../../columns/take.js';
import { copyFromShared } from '../../kernels/copy.js';
import { decodeDelta } from '../../kernels/delta.js';
import { spreadWords } from '../../kernels/spread.js';
import {
  divideDown,
  divideToFloats,
  dropInfinite,
  joinStreams,
  multiply,
  noneNegative,
  widenFloat32,
  widenInt32,
  wrapInt32,
} from '../../kernels/stored-numbers.js';
import { encoding, FormatError, physicalType } from '../../parquet/format.js';
import { LogstrataError } from '../../terms/errors.js';
import type { ForeignColumn, ParquetStorage } from '../foreign-file.js';
import { decodeEntryCodes } from './code-pages.js';
import type { StoredPage } from './stored-page.js';

type Values = BigInt64Array | Float64Array;

/** Collects the numbers of consecutive pages in one array, as stored but widened to signed 64-bit integers or doubles. */
export class NumberPages {
  readonly #stored: ParquetStorage;
  readonly #is32: boolean;
  readonly #isFloat: boolean;
  readonly #values: Values;
  readonly #entries: NumberColumn | null;

  /** @param entries the dictionary's entries, as stored */
  constructor(rows: number, stored: ParquetStorage, entries: NumberColumn | null) {
    const { type } = stored;
    this.#stored = stored;
    this.#is32 = type === physicalType.int32 || type === physicalType.float;
    this.#isFloat = type === physicalType.float || type === physicalType.double;
    this.#values = this.#isFloat ? new Float64Array(rows) : new BigInt64Array(rows);
    this.#entries = entries;
  }

  /** The numbers as stored. */
  get column(): NumberColumn {
    const values = this.#values;
    const common = { length: values.length, validity: null };
    return values instanceof Float64Array
      ? { kind: 'float64', ...common, values }
      : { kind: 'int64', ...common, values };
  }

  /** Adds the rows of a page, from row `row` on. Throws `FormatError`. */
  add(page: StoredPage, row: number): void {
    const { present, rows, bits } = page;
    if (present > 0) this.#decode(page, this.#values.subarray(row, row + present));
    if (bits !== null) spreadWords(halvesOf(this.#values.subarray(row, row + rows)), bits, rows, present);
  }

  #decode(page: StoredPage, target: Values): void {
    const { present, values, at } = page;
    const storedBytes = present * (this.#is32 ? 4 : 8);
    switch (page.encoding) {
      case encoding.plain:
        if (values.length < storedBytes) throw tooShort(page);
        this.#widen(values, present, target);
        return;
      case encoding.byteStreamSplit: {
        if (values.length < storedBytes) throw tooShort(page);
        const joined = new Uint8Array(storedBytes);
        joinStreams(values, 0, present, this.#is32 ? 4 : 8, joined);
        this.#widen(joined, present, target);
        return;
      }
      case encoding.deltaBinaryPacked:
        if (!(target instanceof BigInt64Array))
          throw new FormatError('the page has delta-encoded integers, but the column has another type', at);
        if (decodeDelta(values, 0, target, present) < 0)
          throw new FormatError('the delta-encoded integers are malformed', at);
        if (this.#is32) wrapInt32(target, this.#stored.isUnsigned);
        return;
      case encoding.plainDictionary:
      case encoding.rleDictionary: {
        if (this.#entries === null)
          throw new FormatError('the page has dictionary codes, but there is no dictionary', at);
        const taken = takeColumn(this.#entries, decodeEntryCodes(page, this.#entries.length)) as NumberColumn;
        halvesOf(target).set(halvesOf(taken.values));
        return;
      }
      default:
        throw new FormatError(`the encoding ${page.encoding} is not supported for numbers`, at);
    }
  }

  /** Reads numbers of the stored width, 32 or 64 bits. */
  #widen(source: Uint8Array, count: number, target: Values): void {
    if (!this.#is32)
      copyFromShared(source.subarray(0, count * 8), new Uint8Array(target.buffer, target.byteOffset), 0);
    else if (target instanceof Float64Array) widenFloat32(source, 0, count, target);
    else widenInt32(source, 0, count, target, this.#stored.isUnsigned);
  }
}

function tooShort({ present, values, at }: StoredPage): FormatError {
  return new FormatError(`the page has ${values.length} bytes for ${present} numbers`, at);
}

/** Whether some stored numbers may have no value of the column's type. Rows with them become null. */
export function mayDrop({ values }: ForeignColumn, { type }: ParquetStorage): boolean {
  return (
    type === physicalType.float || type === physicalType.double || (values.kind === 'ticks' && values.ms > 1)
  );
}

/**
 * Converts stored numbers to the column's type, in place. A number that the type can't hold becomes 0, and its bit in `bits`
 * is cleared; `bits` has one bit per row and is needed where `mayDrop` is true. Returns the number of these. Throws
 * `FormatError` for unsigned integers above 2^63 - 1 where the file's bounds exclude them.
 */
export function convertNumbers(
  stored: NumberColumn,
  { type, values: meaning }: ForeignColumn,
  { isUnsigned, scale, type: physical }: ParquetStorage,
  bits: Uint8Array | null,
): { column: NumberColumn; dropped: number } {
  const { values, length } = stored;
  if (values instanceof Float64Array) {
    if (type !== 'float')
      throw new LogstrataError('unsupported', `floats can't be read as values of type ${type}`);
    return { column: stored, dropped: dropInfinite(values, bits!) };
  }
  if (isUnsigned && physical === physicalType.int64 && !noneNegative(values))
    throw new FormatError('an integer is above 2^63 - 1, contrary to the bounds in the file', 0);
  if (type === 'float') {
    const floats = divideToFloats(values, 10 ** scale);
    return { column: { kind: 'float64', length, values: floats, validity: null }, dropped: 0 };
  }
  if (meaning.kind !== 'ticks') return { column: stored, dropped: 0 };
  if (meaning.perMs > 1) divideDown(values, meaning.perMs);
  return { column: stored, dropped: meaning.ms > 1 ? multiply(values, meaning.ms, bits!) : 0 };
}
