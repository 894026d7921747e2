import { isValid, type Column, type PlainColumn } from '../../columns/column.js';
import { plainColumn } from '../../columns/take.js';
import { assert } from '../../terms/assert.js';
import type { FieldType } from '../../terms/schema.js';

/** How the values of each type are stored in the cluster. */
export const farTypes = {
  int: 'Int64',
  float: 'Float64',
  string: 'String',
  time: 'Int64',
  bool: 'UInt8',
} as const satisfies Record<FieldType, string>;

/** A column of a block of ClickHouse's format `Native`: its name, its type, and its bytes. */
export interface NativeColumn {
  readonly name: string;
  readonly type: string;
  readonly parts: readonly Uint8Array[];
}

/** A block: the number of columns, the number of rows, and each column behind its name and its type. */
export function nativeBlock(columns: readonly NativeColumn[], rows: number): Uint8Array {
  const parts: Uint8Array[] = [varint(columns.length), varint(rows)];
  for (const { name, type, parts: own } of columns) parts.push(text(name), text(type), ...own);
  return Buffer.concat(parts);
}

/** A column of one number for all rows. */
export function constantColumn(name: string, value: bigint, rows: number): NativeColumn {
  return { name, type: 'UInt64', parts: [bytesOf(new BigUint64Array(rows).fill(value))] };
}

/** A column of unsigned integers of 64 bits. */
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
  for (let row = from; row < to; row++) if (!isValid(column.validity, row)) nulls[row - from] = 1;
  const plain = plainColumn(column);
  return { name, type: `Nullable(${farTypes[type]})`, parts: [nulls, valuesOf(plain, type, from, to)] };
}

function valuesOf(column: PlainColumn, type: FieldType, from: number, to: number): Uint8Array {
  if (column.kind === 'bytes') return textsOf(column.bytes, column.offsets, from, to);
  const { values } = column;
  if (type !== 'bool') return bytesOf(values.slice(from, to));
  assert(column.kind === 'int64', 'a bool is an integer');
  return Uint8Array.from(column.values.subarray(from, to), (value) => (value === 0n ? 0 : 1));
}

/** Each text behind its length. */
function textsOf(bytes: Uint8Array, offsets: Uint32Array, from: number, to: number): Uint8Array {
  let size = offsets[to]! - offsets[from]!;
  for (let row = from; row < to; row++) size += varintBytes(offsets[row + 1]! - offsets[row]!);
  const out = new Uint8Array(size);
  let at = 0;
  for (let row = from; row < to; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    at = putVarint(out, at, end - start);
    // A call takes longer than a few bytes.
    if (end - start < 24) for (let i = start; i < end; i++) out[at++] = bytes[i]!;
    else {
      out.set(bytes.subarray(start, end), at);
      at += end - start;
    }
  }
  return out;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function varintBytes(value: number): number {
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
