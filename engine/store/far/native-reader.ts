import { isUtf8 } from 'node:buffer';
import { BatchBuilder } from '../../columns/batch-builder.js';
import type { PlainColumn, RecordBatch, Validity } from '../../columns/column.js';
import { bitmapBytes } from '../../kernels/bitmap.js';
import { LogstrataError } from '../../terms/errors.js';
import { farRowsMax } from '../../terms/far-limits.js';
import type { FieldType, Schema } from '../../terms/schema.js';
import { farTypes } from './native-writer.js';

/** Rows as the cluster has answered them: their positions, in the order of the answer, and their fields. */
export interface FarRecords {
  readonly partitions: Uint32Array;
  readonly ordinals: Float64Array;
  readonly batch: RecordBatch;
}

/** A block has a name and a type for each column: these are ours, and short. */
const textBytesMax = 1024;

/**
 * Reads an answer in ClickHouse's format `Native`, whose first column is `_cursor` and whose others are the fields of `schema` under
 * `names`. Throws `io` for anything else: a server that fails in the middle of an answer writes its error behind the last block.
 */
export function readNative(bytes: Uint8Array, schema: Schema, names: readonly string[]): FarRecords {
  const input = new NativeInput(bytes);
  const builder = new BatchBuilder(schema);
  const positions: { partitions: Uint32Array; ordinals: Float64Array }[] = [];
  let rowCount = 0;
  while (!input.isAtEnd) {
    const columns = input.count(names.length + 1);
    const rows = input.count(farRowsMax);
    // A block without columns or rows has nothing to say.
    if (columns === 0 && rows === 0) continue;
    if (columns !== names.length + 1) throw input.damage(`${columns} columns, not ${names.length + 1}`);
    input.header('_cursor', 'UInt64');
    positions.push(input.positions(rows));
    const read = schema.fields.map(({ type }, i) => {
      input.header(names[i]!, `Nullable(${farTypes[type]})`);
      return input.values(type, rows);
    });
    rowCount += rows;
    if (rowCount > farRowsMax) throw input.damage(`more than ${farRowsMax} rows`);
    builder.append({ length: rows, columns: read });
  }
  const partitions = new Uint32Array(rowCount);
  const ordinals = new Float64Array(rowCount);
  let at = 0;
  for (const block of positions) {
    partitions.set(block.partitions, at);
    ordinals.set(block.ordinals, at);
    at += block.partitions.length;
  }
  return { partitions, ordinals, batch: builder.finish() };
}

/** The bytes of an answer, from the first to the last. Nothing is believed: each length is compared with what is left. */
class NativeInput {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    // What `slice` gives is a copy only of what is no `Buffer`.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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

  /** A number of at most `max`, seven bits a byte. */
  count(max: number): number {
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
      if (found !== expected) throw this.damage(`${JSON.stringify(found)} in the place of ${expected}`);
    }
  }

  positions(rows: number): { partitions: Uint32Array; ordinals: Float64Array } {
    const start = this.#skip(rows * 8);
    const partitions = new Uint32Array(rows);
    const ordinals = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      const high = this.#view.getUint32(start + row * 8 + 4, true);
      partitions[row] = high >>> 8;
      ordinals[row] = (high & 0xff) * 2 ** 32 + this.#view.getUint32(start + row * 8, true);
    }
    return { partitions, ordinals };
  }

  values(type: FieldType, rows: number): PlainColumn {
    const nulls = this.#take(rows);
    const validity = validityOf(nulls);
    switch (farTypes[type]) {
      case 'Int64': {
        const values = new BigInt64Array(this.#take(rows * 8).slice().buffer);
        return { kind: 'int64', length: rows, values: withoutNulls(values, 0n, nulls, validity), validity };
      }
      case 'Float64': {
        const values = new Float64Array(this.#take(rows * 8).slice().buffer);
        return { kind: 'float64', length: rows, values: withoutNulls(values, 0, nulls, validity), validity };
      }
      case 'UInt8': {
        const values = BigInt64Array.from(this.#take(rows), (value) => (value === 0 ? 0n : 1n));
        return { kind: 'int64', length: rows, values: withoutNulls(values, 0n, nulls, validity), validity };
      }
      case 'String':
        return this.#texts(rows, nulls, validity);
    }
  }

  #texts(rows: number, nulls: Uint8Array, validity: Validity): PlainColumn {
    const start = this.#at;
    const offsets = new Uint32Array(rows + 1);
    const bytes = new Uint8Array(this.#textBytes(rows));
    this.#at = start;
    let end = 0;
    for (let row = 0; row < rows; row++) {
      const length = this.count(this.#bytes.length);
      const from = this.#skip(length);
      if (nulls[row] === 0 && length > 0) {
        // A value that begins in the middle of a character would make one with the value before it.
        if ((this.#bytes[from]! & 0xc0) === 0x80) throw this.damage('text that is not UTF-8');
        bytes.set(this.#bytes.subarray(from, from + length), end);
        end += length;
      }
      offsets[row + 1] = end;
    }
    const used = bytes.subarray(0, end);
    if (!isUtf8(used)) throw this.damage('text that is not UTF-8');
    return { kind: 'bytes', length: rows, offsets, bytes: used, validity };
  }

  /** Bytes of the next `rows` texts. */
  #textBytes(rows: number): number {
    let size = 0;
    for (let row = 0; row < rows; row++) {
      const length = this.count(this.#bytes.length);
      this.#skip(length);
      size += length;
    }
    return size;
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

/** A null takes a slot of 0, whatever the server has put there. */
function withoutNulls<T extends BigInt64Array | Float64Array>(
  values: T,
  zero: bigint | number,
  nulls: Uint8Array,
  validity: Validity,
): T {
  if (validity !== null)
    for (let row = 0; row < nulls.length; row++) if (nulls[row] !== 0) values[row] = zero as never;
  return values;
}
