import {
  halvesOf,
  isValid,
  type BytesColumn,
  type Column,
  type DictionaryColumn,
  type NumberColumn,
} from '../columns/column.js';
import { typeFacts, type FieldType } from '../core/schema.js';

/** The ClickHouse types of the kinds of columns. */
const farTypes = { int64: 'Int64', float64: 'Float64', bytes: 'String' } as const;

/** The ClickHouse type of a field type. */
export function farTypeOf(type: FieldType): (typeof farTypes)[keyof typeof farTypes] | 'UInt8' {
  const { column, isBits } = typeFacts[type];
  return isBits === true ? 'UInt8' : farTypes[column];
}

/** A column of a block in ClickHouse's format `Native`: name, type and bytes. */
export interface NativeColumn {
  readonly name: string;
  readonly type: string;
  readonly parts: readonly Uint8Array[];
}

/** Encodes a block: the number of columns, the number of rows, then for each column its name, type and bytes. */
export function nativeBlock(columns: readonly NativeColumn[], rows: number): Uint8Array {
  const parts: Uint8Array[] = [varint(columns.length), varint(rows)];
  for (const { name, type, parts: own } of columns) parts.push(text(name), text(type), ...own);
  return Buffer.concat(parts);
}

/** A UInt64 column with the same value in all rows. */
export function constantColumn(name: string, value: bigint, rows: number): NativeColumn {
  return { name, type: 'UInt64', parts: [bytesOf(new BigUint64Array(rows).fill(value))] };
}

/** A UInt64 column. */
export function unsignedColumn(name: string, values: BigUint64Array): NativeColumn {
  return { name, type: 'UInt64', parts: [bytesOf(values)] };
}

/** The rows [from, to) of a field's column. */
export function fieldColumn(
  name: string,
  type: FieldType,
  column: Column,
  from: number,
  to: number,
): NativeColumn {
  const nulls = new Uint8Array(to - from);
  if (column.validity !== null)
    for (let row = from; row < to; row++) if (!isValid(column.validity, row)) nulls[row - from] = 1;
  return { name, type: `Nullable(${farTypeOf(type)})`, parts: [nulls, valuesOf(column, type, nulls, from)] };
}

/** The values from row `from` on, as many as `nulls` has bytes. A null is written as 0 or as the empty text. */
function valuesOf(column: Column, type: FieldType, nulls: Uint8Array, from: number): Uint8Array {
  const values = column.kind === 'dictionary' ? column.values : column;
  const entries = column.kind === 'dictionary' ? column.codes : null;
  if (values.kind === 'bytes') return textsOf(values, entries, nulls, from);
  const words = wordsOf(values, entries, nulls, from);
  if (typeFacts[type].isBits !== true) return bytesOf(words);
  const bools = new Uint8Array(nulls.length);
  for (let i = 0; i < bools.length; i++) if ((words[2 * i]! | words[2 * i + 1]!) !== 0) bools[i] = 1;
  return bools;
}

/** The low and high half of each value. */
function wordsOf(
  { values }: NumberColumn,
  entries: DictionaryColumn['codes'] | null,
  nulls: Uint8Array,
  from: number,
): Int32Array {
  const halves = halvesOf(values);
  if (entries === null) return halves.slice(2 * from, 2 * (from + nulls.length));
  const words = new Int32Array(2 * nulls.length);
  for (let i = 0; i < nulls.length; i++) {
    if (nulls[i] !== 0) continue;
    const entry = entries[from + i]!;
    words[2 * i] = halves[2 * entry]!;
    words[2 * i + 1] = halves[2 * entry + 1]!;
  }
  return words;
}

/** Texts up to this length are copied byte by byte, because a call of `set` takes longer. */
const copiedByLoopMax = 96;

/** Each text, preceded by its length as LEB128. */
function textsOf(
  { bytes, offsets }: BytesColumn,
  entries: DictionaryColumn['codes'] | null,
  nulls: Uint8Array,
  from: number,
): Uint8Array {
  let size = 0;
  for (let i = 0; i < nulls.length; i++) {
    const entry = entries === null ? from + i : entries[from + i]!;
    const length = nulls[i] === 0 ? offsets[entry + 1]! - offsets[entry]! : 0;
    size += length + varintBytes(length);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < nulls.length; i++) {
    if (nulls[i] !== 0) {
      at++;
      continue;
    }
    const entry = entries === null ? from + i : entries[from + i]!;
    const start = offsets[entry]!;
    const end = offsets[entry + 1]!;
    at = putVarint(out, at, end - start);
    if (end - start > copiedByLoopMax) out.set(bytes.subarray(start, end), at);
    else for (let k = start; k < end; k++) out[at + k - start] = bytes[k]!;
    at += end - start;
  }
  return out;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function varintBytes(value: number): number {
  if (value < 0x80) return 1;
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

function putVarint(out: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out[at++] = (rest % 0x80) | 0x80;
  out[at++] = rest;
  return at;
}

function varint(value: number): Uint8Array {
  const out = new Uint8Array(varintBytes(value));
  putVarint(out, 0, value);
  return out;
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(bytes.length), bytes]);
}
