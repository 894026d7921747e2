import { assertNever } from './assert.js';
import type { Column, DictionaryColumn, PlainColumn, Validity } from './column.js';

/** An array by its place in a memory: address in bytes, length in elements. */
export interface ArrayPlace {
  readonly address: number;
  readonly length: number;
}

interface Rows {
  readonly length: number;
  readonly validity: ArrayPlace | null;
}

export type PlainLayout =
  | (Rows & { readonly kind: 'int64' | 'float64'; readonly values: ArrayPlace })
  | (Rows & { readonly kind: 'bytes'; readonly offsets: ArrayPlace; readonly bytes: ArrayPlace });

/** A column that lies in a shared memory, as plain data: what a message to another thread takes. */
export type ColumnLayout =
  | PlainLayout
  | (Rows & {
      readonly kind: 'dictionary';
      readonly codes: ArrayPlace;
      readonly codeBytes: 1 | 2;
      readonly values: PlainLayout;
    });

function placeOf(array: { readonly byteOffset: number; readonly length: number }): ArrayPlace {
  return { address: array.byteOffset, length: array.length };
}

function placeOfValidity(validity: Validity): ArrayPlace | null {
  return validity === null ? null : placeOf(validity);
}

function plainLayout(column: PlainColumn): PlainLayout {
  const rows = { length: column.length, validity: placeOfValidity(column.validity) };
  if (column.kind === 'bytes') {
    return { kind: 'bytes', ...rows, offsets: placeOf(column.offsets), bytes: placeOf(column.bytes) };
  }
  return { kind: column.kind, ...rows, values: placeOf(column.values) };
}

/** Where the arrays of a column lie, all of them in one memory. */
export function columnLayout(column: Column): ColumnLayout {
  if (column.kind !== 'dictionary') return plainLayout(column);
  return {
    kind: 'dictionary',
    length: column.length,
    validity: placeOfValidity(column.validity),
    codes: placeOf(column.codes),
    codeBytes: column.codes instanceof Uint8Array ? 1 : 2,
    values: plainLayout(column.values),
  };
}

/** First address behind the arrays of a column: the memory must reach up to it. */
export function layoutEnd(layout: ColumnLayout): number {
  const ends = [layout.validity === null ? 0 : layout.validity.address + layout.validity.length];
  switch (layout.kind) {
    case 'int64':
    case 'float64':
      ends.push(layout.values.address + layout.values.length * 8);
      break;
    case 'bytes':
      ends.push(layout.offsets.address + layout.offsets.length * 4);
      ends.push(layout.bytes.address + layout.bytes.length);
      break;
    case 'dictionary':
      ends.push(layout.codes.address + layout.codes.length * layout.codeBytes, layoutEnd(layout.values));
      break;
    default:
      assertNever(layout);
  }
  return Math.max(...ends);
}

function plainAt(buffer: ArrayBufferLike, layout: PlainLayout): PlainColumn {
  const { length } = layout;
  const validity =
    layout.validity === null ? null : new Uint8Array(buffer, layout.validity.address, layout.validity.length);
  switch (layout.kind) {
    case 'int64': {
      const values = new BigInt64Array(buffer, layout.values.address, layout.values.length);
      return { kind: 'int64', length, values, validity };
    }
    case 'float64': {
      const values = new Float64Array(buffer, layout.values.address, layout.values.length);
      return { kind: 'float64', length, values, validity };
    }
    case 'bytes':
      return {
        kind: 'bytes',
        length,
        offsets: new Uint32Array(buffer, layout.offsets.address, layout.offsets.length),
        bytes: new Uint8Array(buffer, layout.bytes.address, layout.bytes.length),
        validity,
      };
    default:
      return assertNever(layout);
  }
}

/** The views of a column whose arrays lie in `buffer`, which reaches up to `layoutEnd`: in any thread that has the memory. */
export function columnAt(buffer: ArrayBufferLike, layout: ColumnLayout): Column {
  if (layout.kind !== 'dictionary') return plainAt(buffer, layout);
  const { codes, codeBytes, validity, length } = layout;
  const column: DictionaryColumn = {
    kind: 'dictionary',
    length,
    codes:
      codeBytes === 1
        ? new Uint8Array(buffer, codes.address, codes.length)
        : new Uint16Array(buffer, codes.address, codes.length),
    values: plainAt(buffer, layout.values),
    validity: validity === null ? null : new Uint8Array(buffer, validity.address, validity.length),
  };
  return column;
}
