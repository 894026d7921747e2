import { assertNever } from '../../terms/assert.js';
import { isValid, type Column, type PlainColumn } from '../../columns/column.js';
import type { FieldType } from '../../terms/schema.js';
import type { CountedValue } from '../plan/count.js';
import type { ValueTable } from './value-table.js';

const zero = new Uint8Array(8);
const text = new TextDecoder('utf-8', { ignoreBOM: true });

/** The bytes of an integer in the form that a column has. */
export function integerBytes(value: bigint): Uint8Array {
  return new Uint8Array(BigInt64Array.of(value).buffer);
}

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
    const column = this.#column;
    if (column.kind === 'bytes')
      return table.add(this.#bytes, column.offsets[row]!, column.offsets[row + 1]!);
    // −0 and +0 are one value.
    if (column.kind === 'float64' && column.values[row] === 0) return table.add(zero, 0, 8);
    return table.add(this.#bytes, 8 * row, 8 * row + 8);
  }
}

/** The number of the value of each of the rows; -1 for null. New values get numbers. Each entry of a dictionary is looked up once. */
export function valuesOfRows(column: Column, rows: Uint32Array, table: ValueTable): Int32Array {
  const { validity } = column;
  const found = new Int32Array(rows.length);
  const source = new ValueBytes(column.kind === 'dictionary' ? column.values : column);
  const known = column.kind === 'dictionary' ? new Int32Array(column.values.length).fill(-1) : null;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (!isValid(validity, row)) found[i] = -1;
    else if (column.kind !== 'dictionary' || known === null) found[i] = source.add(table, row);
    else {
      const code = column.codes[row]!;
      if (known[code]! < 0) known[code] = source.add(table, code);
      found[i] = known[code]!;
    }
  }
  return found;
}

/** Decodes a value of a field from its bytes. */
export function countedValue(bytes: Uint8Array, type: FieldType): CountedValue {
  if (type === 'string') return text.decode(bytes);
  const own = bytes.slice().buffer;
  switch (type) {
    case 'int':
    case 'time':
      return new BigInt64Array(own)[0]!;
    case 'bool':
      return new BigInt64Array(own)[0]! !== 0n;
    case 'float':
      return new Float64Array(own)[0]!;
    default:
      return assertNever(type);
  }
}

/** Compares two values of a field: strings byte by byte, others as numbers. */
export function compareValues(a: Uint8Array, b: Uint8Array, type: FieldType): number {
  if (type === 'string') return Buffer.compare(a, b);
  const [one, other] = [countedValue(a, type), countedValue(b, type)];
  return one < other ? -1 : one > other ? 1 : 0;
}
