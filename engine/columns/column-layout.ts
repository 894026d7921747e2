import { assertNever } from '../terms/assert.js';
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

/** Words that `layoutWords` gives. */
export const wordsPerLayout = 10;

const kindsOfValues = ['int64', 'float64', 'bytes'] as const;

/**
 * A layout as numbers alone: many of them go to another thread in one array, which it reads in a fraction of the time that as many objects
 * take.
 */
export function layoutWords(layout: ColumnLayout): Uint32Array {
  const values = layout.kind === 'dictionary' ? layout.values : layout;
  const { validity } = layout;
  const data = values.kind === 'bytes' ? values.bytes : values.values;
  return Uint32Array.of(
    layout.length,
    validity?.address ?? 0,
    validity?.length ?? 0,
    layout.kind === 'dictionary' ? layout.codes.address : 0,
    layout.kind === 'dictionary' ? layout.codeBytes : 0,
    kindsOfValues.indexOf(values.kind),
    values.length,
    data.address,
    data.length,
    values.kind === 'bytes' ? values.offsets.address : 0,
  );
}

/** The layout whose words stand at `at`. */
export function layoutOfWords(words: Uint32Array, at: number): ColumnLayout {
  const [rows = 0, validityAt = 0, validityBytes = 0, codesAt = 0, codeBytes = 0] = words.subarray(at);
  const [kindAt = 0, length = 0, dataAt = 0, dataLength = 0, offsetsAt = 0] = words.subarray(at + 5);
  const validity = validityBytes === 0 ? null : { address: validityAt, length: validityBytes };
  const kind = kindsOfValues[kindAt]!;
  const data = { address: dataAt, length: dataLength };
  const own = { length, validity: codeBytes === 0 ? validity : null };
  const values: PlainLayout =
    kind === 'bytes'
      ? { kind, ...own, offsets: { address: offsetsAt, length: length + 1 }, bytes: data }
      : { kind, ...own, values: data };
  if (codeBytes === 0) return values;
  const codes = { address: codesAt, length: rows };
  return { kind: 'dictionary', length: rows, validity, codes, codeBytes: codeBytes === 1 ? 1 : 2, values };
}
