import { plainColumn } from '../columns/take.js';
import { fillCursors } from '../store/manifest/cursor-column.js';
import type { OrdinalRun } from '../store/manifest/manifest.js';
import { isUtf8 } from 'node:buffer';
import {
  halvesOf,
  isValid,
  type BytesColumn,
  type Column,
  type NumberColumn,
  numberColumn,
  type PlainColumn,
  type RecordBatch,
  type Validity,
} from '../columns/column.js';
import { typeFacts, type FieldType, type Schema } from '../core/schema.js';
import { BatchBuilder } from '../columns/batch-builder.js';
import { bitmapBytes } from '../kernels/bitmap.js';
import { LogstrataError } from '../core/errors.js';
import { rowGroupRowsMax } from '../core/limits.js';

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
  return {
    name,
    type: `Nullable(${farTypeOf(type)})`,
    parts: [nulls, valuesOf(plainColumn(column), type, nulls, from)],
  };
}

/** The values from row `from` on, as many as `nulls` has bytes. A null is written as 0 or as the empty text. */
function valuesOf(column: PlainColumn, type: FieldType, nulls: Uint8Array, from: number): Uint8Array {
  if (column.kind === 'bytes') return textsOf(column, nulls, from);
  const words = halvesOf(column.values).slice(2 * from, 2 * (from + nulls.length));
  if (typeFacts[type].isBits !== true) return bytesOf(words);
  return Uint8Array.from(nulls, (_, i) => ((words[2 * i]! | words[2 * i + 1]!) === 0 ? 0 : 1));
}

/** Texts up to this length are copied byte by byte, because a call of `set` takes longer. */
const copiedByLoopMax = 96;

/** Each text, preceded by its length as LEB128. */
function textsOf({ bytes, offsets }: BytesColumn, nulls: Uint8Array, from: number): Uint8Array {
  let size = 0;
  for (let row = from; row < from + nulls.length; row++) {
    const length = nulls[row - from] === 0 ? offsets[row + 1]! - offsets[row]! : 0;
    size += length + varintBytes(length);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (let row = from; row < from + nulls.length; row++) {
    const start = offsets[row]!;
    const end = nulls[row - from] === 0 ? offsets[row + 1]! : start;
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

/** Rows of a cluster's answer: their positions, in the order of the answer, and their fields. */
export interface FarRecords {
  readonly partitions: Uint32Array;
  readonly ordinals: Float64Array;
  readonly batch: RecordBatch;
}

/** Limit on the names and types of columns, which are ours and short. */
const textBytesMax = 1024;

/** The rows of one block. */
type Block = FarRecords;

/** Texts up to this length are moved byte by byte, because a call of `copyWithin` takes longer. */
const movedByLoopMax = 96;
const wordBytes = 8;

/**
 * Decodes an answer in ClickHouse's format `Native`. The first column is `_cursor`, or another one of type UInt64; the others are the
 * fields of `schema` under `names`. The reader takes over `bytes`: values are moved within it and stay there. Throws `io` for anything
 * else; a server that fails in the middle of an answer writes its error after the last block.
 */
export function readNative(
  bytes: Uint8Array,
  schema: Schema,
  names: readonly string[],
  first = '_cursor',
): FarRecords {
  const input = new NativeInput(bytes);
  const blocks: Block[] = [];
  let rowCount = 0;
  while (!input.isAtEnd) {
    const columns = input.count(names.length + 1);
    const rows = input.count(rowGroupRowsMax);
    // An empty block.
    if (columns === 0 && rows === 0) continue;
    if (columns !== names.length + 1) throw input.damage(`${columns} columns, not ${names.length + 1}`);
    input.header(first, 'UInt64');
    const positions = input.positions(rows);
    const read = schema.fields.map(({ type }, i) => {
      input.header(names[i]!, `Nullable(${farTypeOf(type)})`);
      return input.values(type, rows);
    });
    rowCount += rows;
    if (rowCount > rowGroupRowsMax) throw input.damage(`more than ${rowGroupRowsMax} rows`);
    blocks.push({ ...positions, batch: { length: rows, columns: read } });
  }
  return blocks.length === 1 ? blocks[0]! : together(blocks, schema, rowCount);
}

/** Joins the rows of several blocks by copying. */
function together(blocks: readonly Block[], schema: Schema, rowCount: number): FarRecords {
  const builder = new BatchBuilder(schema);
  const partitions = new Uint32Array(rowCount);
  const ordinals = new Float64Array(rowCount);
  let at = 0;
  for (const block of blocks) {
    partitions.set(block.partitions, at);
    ordinals.set(block.ordinals, at);
    builder.append(block.batch);
    at += block.batch.length;
  }
  return { partitions, ordinals, batch: builder.finish() };
}

/** A cursor over the bytes of an answer. The input is not trusted: every length is checked against the remaining bytes. */
class NativeInput {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    // Not a `Buffer`, so that the subarrays that become columns are plain arrays.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  damage(what: string): LogstrataError {
    const text = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    const error = text.lastIndexOf('DB::Exception');
    const said = error < 0 ? '' : `: ${text.toString('utf8', error, error + 200).split('\n')[0]}`;
    return new LogstrataError(
      'io',
      `an answer of ClickHouse can't be read at byte ${this.#at}: ${what}${said}`,
    );
  }

  /** Reads an unsigned LEB128 number of at most `max`. */
  count(max: number): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80 && first <= max) {
      this.#at++;
      return first;
    }
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 5; i++) {
      if (this.#at === this.#bytes.length) throw this.damage('it ends early');
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > max) throw this.damage(`${value} is more than ${max}`);
        return value;
      }
      scale *= 0x80;
    }
    throw this.damage('a number that is too long');
  }

  header(name: string, type: string): void {
    for (const expected of [name, type]) {
      const found = Buffer.from(this.#take(this.count(textBytesMax))).toString();
      if (found !== expected) throw this.damage(`${JSON.stringify(found)} instead of ${expected}`);
    }
  }

  positions(rows: number): { partitions: Uint32Array; ordinals: Float64Array } {
    const { buffer, byteOffset } = this.#words(rows);
    const halves = new Uint32Array(buffer, byteOffset, 2 * rows);
    const partitions = new Uint32Array(rows);
    const ordinals = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      const high = halves[2 * row + 1]!;
      partitions[row] = high >>> 8;
      ordinals[row] = (high & 0xff) * 2 ** 32 + halves[2 * row]!;
    }
    return { partitions, ordinals };
  }

  values(type: FieldType, rows: number): PlainColumn {
    const nulls = this.#take(rows);
    const validity = validityOf(nulls);
    switch (farTypeOf(type)) {
      case 'Int64':
        return numbers('int64', this.#words(rows), validity);
      case 'Float64':
        return numbers('float64', this.#words(rows), validity);
      case 'UInt8': {
        const words = new Uint8Array(rows * wordBytes);
        const values = this.#take(rows);
        for (let row = 0; row < rows; row++) if (values[row] !== 0) words[row * wordBytes] = 1;
        return numbers('int64', words, validity);
      }
      case 'String':
        return this.#texts(rows, validity);
    }
  }

  /**
   * Reads texts. It moves each text directly behind the previous one, and the first to an aligned offset, over the null map, which was read
   * before.
   */
  #texts(rows: number, validity: Validity): PlainColumn {
    const bytes = this.#bytes;
    const start = this.#wordBefore(this.#at);
    const offsets = new Uint32Array(rows + 1);
    let end = start;
    for (let row = 0; row < rows; row++) {
      const length = this.count(bytes.length);
      const from = this.#skip(length);
      if (length > 0 && isValid(validity, row)) {
        // A value that begins with a continuation byte could form a valid character with the end of the previous value.
        if ((bytes[from]! & 0xc0) === 0x80) throw this.damage('text that is not UTF-8');
        if (length > movedByLoopMax) bytes.copyWithin(end, from, from + length);
        else for (let i = 0; i < length; i++) bytes[end + i] = bytes[from + i]!;
        end += length;
      }
      offsets[row + 1] = end - start;
    }
    const used = bytes.subarray(start, end);
    if (!isUtf8(used)) throw this.damage('text that is not UTF-8');
    return { kind: 'bytes', length: rows, offsets, bytes: used, validity };
  }

  /** The largest 8-byte aligned offset up to `at`. The bytes before it may be overwritten: at least the column's name and type precede its values. */
  #wordBefore(at: number): number {
    return at - ((this.#bytes.byteOffset + at) % wordBytes);
  }

  /** Reads `rows` 8-byte values, and moves them to an aligned offset. */
  #words(rows: number): Uint8Array {
    const bytes = this.#bytes;
    const from = this.#skip(rows * wordBytes);
    const at = this.#wordBefore(from);
    bytes.copyWithin(at, from, from + rows * wordBytes);
    return bytes.subarray(at, at + rows * wordBytes);
  }

  #take(length: number): Uint8Array {
    const from = this.#skip(length);
    return this.#bytes.subarray(from, from + length);
  }

  #skip(length: number): number {
    const from = this.#at;
    if (length > this.#bytes.length - from) throw this.damage('it ends early');
    this.#at = from + length;
    return from;
  }
}

function validityOf(nulls: Uint8Array): Validity {
  let validity: Uint8Array | null = null;
  for (let row = 0; row < nulls.length; row++) {
    if (nulls[row] === 0) continue;
    validity ??= allPresent(nulls.length);
    validity[row >> 3]! &= ~(1 << (row & 7));
  }
  return validity;
}

function allPresent(rows: number): Uint8Array {
  const bits = new Uint8Array(bitmapBytes(rows)).fill(0xff, 0, rows >> 3);
  if ((rows & 7) !== 0) bits[rows >> 3] = (1 << (rows & 7)) - 1;
  return bits;
}

/** A column of 8-byte values. Nulls are set to 0, whatever the server has sent for them. */
function numbers(kind: NumberColumn['kind'], words: Uint8Array, validity: Validity): NumberColumn {
  const { buffer, byteOffset } = words;
  const length = words.length / wordBytes;
  if (validity !== null) {
    const halves = new Int32Array(buffer, byteOffset, 2 * length);
    for (let row = 0; row < length; row++)
      if (!isValid(validity, row)) halves[2 * row] = halves[2 * row + 1] = 0;
  }
  return numberColumn(kind, length, buffer, byteOffset, validity);
}

/** The values of column `_cursor` for rows that are consecutive in runs. */
export function cursorsOf(runs: readonly OrdinalRun[], rows: number): BigUint64Array {
  const cursors = new BigUint64Array(rows);
  fillCursors(runs, 0, cursors);
  return cursors;
}
