import { isValid, type Column, type PlainColumn } from '../columns/column.js';
import { takeColumn } from '../columns/take.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { answeredValue, typeFacts, type FieldType } from '../core/schema.js';
import { numberedOf } from '../numbers/numbered.js';
import type { CountedValue } from './count-query.js';
import type { ValueTable } from './value-table.js';

const zero = new Uint8Array(8);
const text = new TextDecoder('utf-8', { ignoreBOM: true });

/** The values of a column in the form that a `ValueTable` takes, by row. */
export class ValueBytes {
  readonly #column: PlainColumn;
  readonly #bytes: Uint8Array;

  constructor(column: PlainColumn) {
    this.#column = column;
    if (column.kind === 'bytes') this.#bytes = column.bytes;
    else {
      const { buffer, byteOffset, byteLength } = column.values;
      this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    }
  }

  /** The number of the value of a row. A new value gets a number. */
  add(table: ValueTable, row: number): number {
    const [bytes, from, to] = this.#of(row);
    return table.add(bytes, from, to);
  }

  /** The number of the value of a row; -1 where it has none. */
  find(table: ValueTable, row: number): number {
    const [bytes, from, to] = this.#of(row);
    return table.find(bytes, from, to);
  }

  #of(row: number): [bytes: Uint8Array, from: number, to: number] {
    const column = this.#column;
    if (column.kind === 'bytes') return [this.#bytes, column.offsets[row]!, column.offsets[row + 1]!];
    // −0 and +0 are one value.
    if (column.kind === 'float64' && column.values[row] === 0) return [zero, 0, 8];
    return [this.#bytes, 8 * row, 8 * row + 8];
  }
}

/** The values of a column that a table has, as a column with a dictionary. The others become null. */
export function knownValues(column: Column, table: ValueTable): Column {
  const { length, validity } = column;
  const { codes, entries, firstRows } = numberedOf(column);
  const values = column.kind === 'dictionary' ? column.values : column;
  const source = new ValueBytes(values);
  const known: number[] = [];
  const knownOf = new Int32Array(entries);
  for (let code = 0; code < entries; code++) {
    const row = firstRows === null ? code : firstRows[code]!;
    knownOf[code] = source.find(table, row) < 0 ? -1 : known.push(row) - 1;
  }
  const knownCodes = new Uint16Array(length);
  const isKnown = new Uint8Array(bitmapBytes(length));
  for (let row = 0; row < length; row++) {
    const code = isValid(validity, row) ? knownOf[codes[row]!]! : -1;
    if (code < 0) continue;
    knownCodes[row] = code;
    isKnown[row >> 3]! |= 1 << (row & 7);
  }
  const dictionary = takeColumn(values, Uint32Array.from(known));
  return { kind: 'dictionary', length, values: dictionary, codes: knownCodes, validity: isKnown };
}

/** Decodes a value of a field from its bytes. */
export function countedValue(bytes: Uint8Array, type: FieldType): CountedValue {
  const { column } = typeFacts[type];
  if (column === 'bytes') return text.decode(bytes);
  const { buffer } = bytes.slice();
  return column === 'float64'
    ? new Float64Array(buffer)[0]!
    : answeredValue(type, new BigInt64Array(buffer)[0]!);
}

/** Compares two values of a field: strings byte by byte, others as numbers. */
export function compareValues(a: Uint8Array, b: Uint8Array, type: FieldType): number {
  if (typeFacts[type].column === 'bytes') return Buffer.compare(a, b);
  const [one, other] = [countedValue(a, type), countedValue(b, type)];
  return one < other ? -1 : one > other ? 1 : 0;
}
