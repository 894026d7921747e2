import { countNumberedBytesMax } from '../core/limits.js';
import { halvesOf, type Column, type PlainColumn, type Validity } from '../columns/column.js';
import { numberBytes, numberWords } from '../kernels/dictionary.js';

/** The values of a column as numbers: dictionary codes, or numbers that were assigned here. */
export interface Numbered {
  readonly codes: Uint8Array | Uint16Array;
  readonly entries: number;
  /** The first row with each number; null where the numbers are dictionary codes. */
  readonly firstRows: Uint32Array | null;
  readonly validity: Validity;
}

/**
 * Numbers the values of a column. Where there is no dictionary, and making one would take longer than looking at each row or too much memory,
 * each row gets its own number.
 */
export function numberedOf(column: Column): Numbered {
  const { validity, length } = column;
  if (column.kind === 'dictionary')
    return { codes: column.codes, entries: column.values.length, firstRows: null, validity };
  const codes = new Uint16Array(length);
  const firstRows = new Uint32Array(length);
  const entries = numberRows(column, codes, firstRows);
  if (entries < 0) return { ...eachItsOwn(length), validity };
  return { codes, entries, firstRows: firstRows.slice(0, entries), validity };
}

/** Numbers for rows whose values are not compared. */
export function eachItsOwn(rows: number): Omit<Numbered, 'validity'> {
  const codes = Uint16Array.from({ length: rows }, (_, row) => row);
  return { codes, entries: rows, firstRows: Uint32Array.from(codes) };
}

function numberRows(column: PlainColumn, codes: Uint16Array, firstRows: Uint32Array): number {
  const { length } = column;
  if (column.kind !== 'bytes') return numberWords(halvesOf(column.values), length, length, codes, firstRows);
  const { bytes, offsets } = column;
  if (offsets[length]! - offsets[0]! > countNumberedBytesMax) return -1;
  return numberBytes(bytes, offsets, length, length, codes, firstRows);
}
