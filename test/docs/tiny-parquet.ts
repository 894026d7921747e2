/**
 * A reader of sealed segments that is written from `docs/format.md` and the Parquet format, without code of the engine. The tests that use
 * this reader fail if the page does not suffice to read a file.
 */

/** A Thrift structure in the compact protocol: field id → value. */
export type Thrift = Map<number, ThriftValue>;
type ThriftValue = boolean | bigint | Buffer | ThriftValue[] | Thrift;

export class ThriftCursor {
  constructor(
    readonly bytes: Buffer,
    public at: number,
  ) {}

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  zigzag(): bigint {
    const value = this.varint();
    return (value >> 1n) ^ -(value & 1n);
  }

  struct(): Thrift {
    const fields: Thrift = new Map();
    for (let id = 0; ;) {
      const head = this.bytes[this.at++]!;
      if (head === 0) return fields;
      id = head >> 4 === 0 ? Number(this.zigzag()) : id + (head >> 4);
      fields.set(id, this.value(head & 15));
    }
  }

  private value(type: number): ThriftValue {
    switch (type) {
      case 1:
      case 2:
        return type === 1;
      case 5:
      case 6:
        return this.zigzag();
      case 8: {
        const length = Number(this.varint());
        this.at += length;
        return this.bytes.subarray(this.at - length, this.at);
      }
      case 9: {
        const head = this.bytes[this.at++]!;
        const length = head >> 4 === 15 ? Number(this.varint()) : head >> 4;
        return Array.from({ length }, () => this.value(head & 15));
      }
      case 12:
        return this.struct();
      default:
        throw new Error(`Thrift type ${type} at byte ${this.at}`);
    }
  }
}

export function numberAt(fields: Thrift, id: number): number {
  return Number(fields.get(id) as bigint);
}

export function structAt(fields: Thrift, id: number): Thrift {
  return fields.get(id) as Thrift;
}

export function listAt<T>(fields: Thrift, id: number): T[] {
  return fields.get(id) as T[];
}

export function textAt(fields: Thrift, id: number): string {
  return (fields.get(id) as Buffer).toString();
}

/** One page: its header, and its stored body. */
export interface Page {
  readonly header: Thrift;
  readonly body: Buffer;
}

/** The pages of a column chunk; they must fill it. */
export function pagesOf(chunk: Buffer): Page[] {
  const pages: Page[] = [];
  for (let at = 0; at < chunk.length;) {
    const cursor = new ThriftCursor(chunk, at);
    const header = cursor.struct();
    at = cursor.at + numberAt(header, 3);
    pages.push({ header, body: chunk.subarray(cursor.at, at) });
  }
  return pages;
}

/** Definition levels and values of a data page, the values decompressed from LZ4_RAW. */
export function dataPage({ header, body }: Page): { levels: Buffer; values: Buffer } {
  const data = structAt(header, 8);
  const levelBytes = numberAt(data, 5);
  const stored = body.subarray(levelBytes);
  const values =
    data.get(7) === true ? unpackLz4(stored, numberAt(header, 2) - levelBytes) : Buffer.from(stored);
  return { levels: body.subarray(0, levelBytes), values };
}

/** One LZ4 block (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md). */
export function unpackLz4(source: Buffer, length: number): Buffer {
  const target = Buffer.alloc(length);
  let at = 0;
  let to = 0;
  const extended = (start: number): number => {
    let sum = start;
    if (start < 15) return sum;
    for (let byte = 255; byte === 255;) sum += byte = source[at++]!;
    return sum;
  };
  for (;;) {
    const token = source[at++]!;
    const literals = extended(token >> 4);
    source.copy(target, to, at, at + literals);
    at += literals;
    to += literals;
    if (at >= source.length) break;
    const distance = source.readUInt16LE(at);
    at += 2;
    const matched = extended(token & 15) + 4;
    for (let k = 0; k < matched; k++, to++) target[to] = target[to - distance]!;
  }
  if (to !== length) throw new Error(`an LZ4 block of ${to} bytes, expected ${length}`);
  return target;
}

/** DELTA_BINARY_PACKED; also returns the position after the values. */
export function unpackDelta(source: Buffer): { values: bigint[]; end: number } {
  const cursor = new ThriftCursor(source, 0);
  const blockValues = Number(cursor.varint());
  const miniblocks = Number(cursor.varint());
  const count = Number(cursor.varint());
  const values = [cursor.zigzag()];
  while (values.length < count) {
    const minimum = cursor.zigzag();
    const widths = source.subarray(cursor.at, cursor.at + miniblocks);
    cursor.at += miniblocks;
    for (const width of widths) {
      if (values.length >= count) break;
      const inMiniblock = blockValues / miniblocks;
      for (let k = 0; k < inMiniblock && values.length < count; k++) {
        const delta = minimum + bitsAt(source, cursor.at, k * width, width);
        values.push(BigInt.asIntN(64, values.at(-1)! + delta));
      }
      cursor.at += (inMiniblock * width) / 8;
    }
  }
  return { values, end: cursor.at };
}

/** `width` bits from bit `from` on, least significant first. */
function bitsAt(source: Buffer, at: number, from: number, width: number): bigint {
  let value = 0n;
  for (let k = 0; k < width; k++) {
    const bit = from + k;
    if ((source[at + (bit >> 3)]! >> (bit & 7)) & 1) value |= 1n << BigInt(k);
  }
  return value;
}

/** RLE/bit-packing hybrid of `count` numbers of `width` bits. */
export function unpackHybrid(source: Buffer, width: number, count: number): number[] {
  const cursor = new ThriftCursor(source, 0);
  const numbers: number[] = [];
  while (numbers.length < count) {
    const head = Number(cursor.varint());
    if (head % 2 === 0) {
      const value = width === 0 ? 0 : source.readUIntLE(cursor.at, Math.ceil(width / 8));
      cursor.at += Math.ceil(width / 8);
      for (let k = 0; k < head >> 1; k++) numbers.push(value);
    } else {
      const packed = (head >> 1) * 8;
      for (let k = 0; k < packed; k++) numbers.push(Number(bitsAt(source, cursor.at, k * width, width)));
      cursor.at += (head >> 1) * width;
    }
  }
  return numbers.slice(0, count);
}

/** PLAIN strings. */
export function plainStrings(source: Buffer): string[] {
  const strings: string[] = [];
  for (let at = 0; at < source.length;) {
    const length = source.readUInt32LE(at);
    strings.push(source.toString('utf8', at + 4, at + 4 + length));
    at += 4 + length;
  }
  return strings;
}
