import type { BytesColumn, Column, PlainColumn, Validity } from '../../engine/columns/column.js';
import type { FieldType } from '../../engine/core/schema.js';
import type { Value } from './dataset.js';
import { between, type Random } from './random.js';
import { bitmapBytes } from '../../engine/kernels/bitmap.js';

/** Values as a column in a randomly chosen layout. */
export function makeColumn(type: FieldType, values: readonly Value[], random: Random): Column {
  const validity = makeValidity(values, random);
  const distinct = [...new Set(values.filter((value) => value !== null))];
  if (random() < 0.5 || distinct.length > 65536) return makePlain(type, values, validity, random);
  const codeOf = new Map(distinct.map((value, code) => [value, code]));
  const codes = values.map((value) => (value === null ? 0 : codeOf.get(value)!));
  return {
    kind: 'dictionary',
    length: values.length,
    codes: distinct.length <= 256 ? Uint8Array.from(codes) : Uint16Array.from(codes),
    values: makePlain(type, distinct, null, random),
    validity,
  };
}

function makeValidity(values: readonly Value[], random: Random): Validity {
  if (!values.includes(null) && random() < 0.7) return null;
  const validity = new Uint8Array(bitmapBytes(values.length));
  values.forEach((value, row) => {
    if (value !== null) validity[row >> 3]! |= 1 << (row & 7);
  });
  return validity;
}

function makePlain(
  type: FieldType,
  values: readonly Value[],
  validity: Validity,
  random: Random,
): PlainColumn {
  const length = values.length;
  switch (type) {
    case 'int':
    case 'time':
    case 'bool':
      return {
        kind: 'int64',
        length,
        values: BigInt64Array.from(values, (value) => (value as bigint | null) ?? 0n),
        validity,
      };
    case 'float':
      return {
        kind: 'float64',
        length,
        values: Float64Array.from(values, (value) => (value as number | null) ?? 0),
        validity,
      };
    case 'string':
      return makeBytes(values as readonly (string | null)[], validity, random);
  }
}

/** With other bytes before and after those of the rows, like a slice of a larger buffer. */
function makeBytes(values: readonly (string | null)[], validity: Validity, random: Random): BytesColumn {
  const lead = between(random, 0, 9);
  const parts = values.map((value) => Buffer.from(value ?? '', 'utf8'));
  const bytes = Buffer.concat([Buffer.alloc(lead, 'k'), ...parts, Buffer.alloc(between(random, 0, 9), 's')]);
  const offsets = new Uint32Array(values.length + 1);
  offsets[0] = lead;
  parts.forEach((part, row) => (offsets[row + 1] = offsets[row]! + part.length));
  return { kind: 'bytes', length: values.length, offsets, bytes: new Uint8Array(bytes), validity };
}
