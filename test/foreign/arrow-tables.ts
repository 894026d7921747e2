import * as arrow from 'apache-arrow';
import fc from 'fast-check';
import { lz4BytesMax, lz4Compress } from '../../engine/kernels/lz4.js';
import type { OurValue } from './duckdb-values.js';

/** A column that apache-arrow builds from JavaScript values, and these values as the engine reads them. */
export interface ArrowSample {
  readonly type: arrow.DataType;
  readonly values: fc.Arbitrary<unknown>;
  readonly ours: (value: never) => OurValue;
}

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const bytes = fc.string({ maxLength: 20 }).map((value) => Buffer.from(value, 'utf8'));
const int = (bits: number): fc.Arbitrary<number> =>
  fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 });
const unsigned = (bits: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: 2 ** bits - 1 });
const day = 86_400_000;
const ms = fc.integer({ min: -1e13, max: 1e13 });
const json = (value: unknown): string => JSON.stringify(value);
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

function field(name: string, type: arrow.DataType): arrow.Field {
  return new arrow.Field(name, type, true);
}

const text8 = new arrow.Utf8();

/** Types of every layout that apache-arrow writes. */
export const arrowSamples: Record<string, ArrowSample> = {
  int8: { type: new arrow.Int8(), values: int(8), ours: (value: number) => BigInt(value) },
  int16: { type: new arrow.Int16(), values: int(16), ours: (value: number) => BigInt(value) },
  int32: { type: new arrow.Int32(), values: int(32), ours: (value: number) => BigInt(value) },
  int64: { type: new arrow.Int64(), values: int64, ours: (value: bigint) => value },
  uint8: { type: new arrow.Uint8(), values: unsigned(8), ours: (value: number) => BigInt(value) },
  uint32: { type: new arrow.Uint32(), values: unsigned(32), ours: (value: number) => BigInt(value) },
  uint64: {
    type: new arrow.Uint64(),
    values: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    ours: (value: bigint) => String(value),
  },
  float32: {
    type: new arrow.Float32(),
    values: fc.float(),
    ours: (value: number) => (Number.isFinite(value) ? value : null),
  },
  float64: {
    type: new arrow.Float64(),
    values: fc.double(),
    ours: (value: number) => (Number.isFinite(value) ? value : null),
  },
  bool: { type: new arrow.Bool(), values: fc.boolean(), ours: (value: boolean) => (value ? 1n : 0n) },
  utf8: { type: new arrow.Utf8(), values: text, ours: (value: string) => value },
  'large utf8': { type: new arrow.LargeUtf8(), values: text, ours: (value: string) => value },
  binary: { type: new arrow.Binary(), values: bytes, ours: (value: Buffer) => value.toString('utf8') },
  'fixed bytes': {
    type: new arrow.FixedSizeBinary(5),
    values: fc.integer({ min: 10_000, max: 99_999 }).map((value) => Buffer.from(String(value))),
    ours: (value: Buffer) => value.toString('utf8'),
  },
  'timestamp s': {
    type: new arrow.TimestampSecond(),
    values: ms.map((value) => 1000 * Math.floor(value / 1000)),
    ours: (value: number) => BigInt(value),
  },
  'timestamp ms': {
    type: new arrow.TimestampMillisecond('UTC'),
    values: ms,
    ours: (value: number) => BigInt(value),
  },
  date32: {
    type: new arrow.DateDay(),
    values: ms.map((value) => new Date(day * Math.floor(value / day))),
    ours: (value: Date) => BigInt(value.getTime()),
  },
  date64: {
    type: new arrow.DateMillisecond(),
    values: ms.map((value) => new Date(value)),
    ours: (value: Date) => BigInt(value.getTime()),
  },
  'time us': {
    type: new arrow.TimeMicrosecond(),
    values: fc.bigInt({ min: 0n, max: 86_399n }).map((value) => value * 1_000_000n),
    ours: (value: bigint) => new Date(Number(value / 1000n)).toISOString().slice(11, 19),
  },
  dictionary: {
    type: new arrow.Dictionary(new arrow.Utf8(), new arrow.Int16()),
    values: fc.constantFrom('a', 'bb', 'é'),
    ours: (value: string) => value,
  },
  list: {
    type: new arrow.List(field('item', new arrow.Int32())),
    values: fc.array(fc.option(int(32)), { maxLength: 5 }),
    ours: json,
  },
  'large list': {
    type: new arrow.LargeList(field('item', new arrow.Bool())),
    values: fc.array(fc.option(fc.boolean()), { maxLength: 5 }),
    ours: json,
  },
  map: {
    type: new arrow.Map_(
      field(
        'entries',
        new arrow.Struct([new arrow.Field('key', new arrow.Int32(), false), field('value', text8)]),
      ) as never,
    ),
    values: fc.array(fc.tuple(unsigned(8), text), { maxLength: 4 }).map((pairs) => new Map(pairs)),
    ours: (value: Map<number, string>) =>
      `{${[...value].map(([key, held]) => `"${key}":${json(held)}`).join(',')}}`,
  },
  'utf8 view': {
    type: new arrow.Utf8View(),
    values: fc.oneof(text, fc.string({ minLength: 13, maxLength: 40 })),
    ours: (value: string) => value,
  },
  'fixed list': {
    type: new arrow.FixedSizeList(2, field('item', new arrow.Utf8())),
    values: fc.tuple(text, fc.option(text)),
    ours: json,
  },
  struct: {
    type: new arrow.Struct([
      field('b', new arrow.Utf8()),
      field('a', new arrow.List(field('item', new arrow.Struct([field('x', new arrow.Float64())])))),
    ]),
    values: fc.record({
      b: fc.option(text),
      a: fc.array(fc.record({ x: fc.option(fc.integer()) }), { maxLength: 3 }),
    }),
    ours: json,
  },
};

/** A table of these columns, cut into batches of `rows` rows. */
export function tableOf(
  columns: Record<string, { type: arrow.DataType; values: unknown[] }>,
  rows: number,
): arrow.Table {
  const names = Object.keys(columns);
  const schema = new arrow.Schema(names.map((name) => field(name, columns[name]!.type)));
  const length = columns[names[0]!]!.values.length;
  const batches: arrow.RecordBatch[] = [];
  const codes = names.map((name) => {
    const { type, values } = columns[name]!;
    return type instanceof arrow.Dictionary ? arrow.vectorFromArray(values, type) : null;
  });
  for (let from = 0; from < Math.max(1, length); from += rows) {
    const to = Math.min(length, from + rows);
    // Batches share a dictionary. All other batches are built again, because apache-arrow writes slices of views wrongly.
    const parts = names.map((name, i) => {
      const { type, values } = columns[name]!;
      const part = codes[i]?.slice(from, to) ?? arrow.vectorFromArray(values.slice(from, to), type);
      return part.data[0] ?? arrow.makeData({ type, length: 0 } as never);
    });
    const data = arrow.makeData({
      type: new arrow.Struct(schema.fields),
      length: to - from,
      nullCount: 0,
      children: parts,
    });
    batches.push(new arrow.RecordBatch(schema, data as arrow.Data<arrow.Struct>));
  }
  return new arrow.Table(schema, batches);
}

/** An LZ4 frame of blocks of 100 bytes, each of which is compressed only if that makes it smaller. */
export function lz4Frame(content: Uint8Array): Uint8Array {
  const parts = [Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82])];
  for (let from = 0; from < content.length; from += 100) {
    const block = content.slice(from, from + 100);
    const room = new Uint8Array(lz4BytesMax(block.length));
    const compressed = room.subarray(0, lz4Compress(block, room));
    const isSmaller = compressed.length < block.length;
    const size = Buffer.alloc(4);
    size.writeUInt32LE(isSmaller ? compressed.length : (block.length | 0x80000000) >>> 0);
    parts.push(size, Buffer.from(isSmaller ? compressed : block));
  }
  return Buffer.concat([...parts, Buffer.alloc(4)]);
}
