import type { Encoding, SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { caseCount, fc } from '../cases.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { lz4BytesMax } from '../../engine/kernels/lz4.js';
import { openCompressor } from '../../engine/parquet/compression.js';
import type { OurValue } from './duckdb-values.js';
import { readingOf, valuesOf } from './reading.js';

const numRuns = caseCount(30, 3000);

let folder: string;
let compressors: Record<string, (bytes: Uint8Array) => Uint8Array>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-encodings-'));
  const zstd = await openCompressor('zstd');
  const lz4 = await openCompressor('lz4');
  compressors = {
    GZIP: gzipTwice,
    ZSTD: (bytes) => twice(bytes, (half) => zstd(half, new Uint8Array(0))),
    LZ4_RAW: (bytes) => lz4(bytes, new Uint8Array(lz4BytesMax(bytes.length))),
    LZ4: (bytes) =>
      twice(bytes, (half) => hadoopBlock(half, lz4(half, new Uint8Array(lz4BytesMax(half.length))))),
  };
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Two compressed parts in sequence, as the formats allow. */
function twice(bytes: Uint8Array, compress: (half: Uint8Array) => Uint8Array): Uint8Array {
  const middle = bytes.length >> 1;
  const parts = middle === 0 ? [bytes] : [bytes.subarray(0, middle), bytes.subarray(middle)];
  return Buffer.concat(parts.map((part) => compress(part).slice()));
}

function gzipTwice(bytes: Uint8Array): Uint8Array {
  return twice(bytes, (half) => gzipSync(half));
}

/** A block of the older LZ4 framing, with its lengths before it. */
function hadoopBlock(content: Uint8Array, block: Uint8Array): Uint8Array {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(content.length, 0);
  lengths.writeUInt32BE(block.length, 4);
  return Buffer.concat([lengths, block]);
}

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -50n, max: 50n }),
);
const int32 = fc.oneof(fc.integer(), fc.integer({ min: -50, max: 50 }));
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('', 'a common beginning', 'a common beginning and more', 'zażółć'),
);

interface Column {
  readonly element: Omit<SchemaElement, 'name'>;
  readonly encodings: readonly Encoding[];
  readonly values: fc.Arbitrary<unknown>;
  readonly read: (value: unknown) => OurValue;
}

const isSigned = false;
const delta: Encoding = 'DELTA_BINARY_PACKED';
const split: Encoding = 'BYTE_STREAM_SPLIT';
const dictionary: Encoding = 'RLE_DICTIONARY';
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const asText = (value: unknown): string => decoder.decode(value as Uint8Array);

const columns: Record<string, Column> = {
  int64: {
    element: { type: 'INT64' },
    encodings: ['PLAIN', delta, split, dictionary],
    values: int64,
    read: (value) => value as bigint,
  },
  int32: {
    element: { type: 'INT32' },
    encodings: ['PLAIN', delta, split, dictionary],
    values: int32,
    read: (value) => BigInt(value as number),
  },
  uint32: {
    element: {
      type: 'INT32',
      logical_type: { type: 'INTEGER', bitWidth: 32, isSigned },
      converted_type: 'UINT_32',
    },
    encodings: ['PLAIN', delta, dictionary],
    values: fc.nat(2 ** 31 - 1),
    read: (value) => BigInt(value as number),
  },
  double: {
    element: { type: 'DOUBLE' },
    encodings: ['PLAIN', split, dictionary],
    values: fc.double(),
    read: (value) => (Number.isFinite(value) ? (value as number) : null),
  },
  float: {
    element: { type: 'FLOAT' },
    encodings: ['PLAIN', split, dictionary],
    values: fc.float(),
    read: (value) => (Number.isFinite(value) ? (value as number) : null),
  },
  boolean: {
    element: { type: 'BOOLEAN' },
    encodings: ['PLAIN', 'RLE'],
    values: fc.boolean(),
    read: (value) => (value === true ? 1n : 0n),
  },
  string: {
    element: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
    encodings: ['PLAIN', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY', dictionary],
    values: text,
    read: (value) => value as string,
  },
  bytes: {
    element: { type: 'BYTE_ARRAY' },
    encodings: ['PLAIN', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY', dictionary],
    values: fc.uint8Array({ maxLength: 12 }),
    read: asText,
  },
  'fixed bytes': {
    element: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 5 },
    encodings: ['PLAIN', split, dictionary],
    values: fc.uint8Array({ minLength: 5, maxLength: 5 }),
    read: asText,
  },
};

const codecs = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD', 'LZ4_RAW', 'LZ4'] as const;
const cases = Object.entries(columns).flatMap(([name, column]) =>
  column.encodings.map((encoding) => ({ name, encoding, column })),
);

describe('random values', () => {
  it.each(cases)(
    'of $name are read in $encoding',
    { timeout: 60_000 },
    async ({ name, encoding, column }) => {
      const path = join(folder, `${name}-${encoding}.parquet`);
      const some = fc.array(column.values, { minLength: 1, maxLength: 40 });
      const shape = fc.record({
        nullable: fc.boolean(),
        nulls: fc.constantFrom(0, 2, 3, 10),
        rows: fc.oneof(fc.nat(40), fc.integer({ min: 100, max: 1500 })),
        pageSize: fc.constantFrom(1, 100, 1000, 100_000),
        codec: fc.constantFrom(...codecs),
        spanRows: fc.constantFrom(7, 64, 333, 65_536),
      });
      await fc.assert(
        fc.asyncProperty(some, shape, async (list, { nullable, nulls, rows, pageSize, codec, spanRows }) => {
          // A few values repeated, with nulls in between.
          const data = Array.from({ length: rows + 1 }, (_, row) =>
            nullable && nulls > 0 && (row * row) % nulls === 1
              ? null
              : list[(row * 7 + (row >> 5)) % list.length],
          );
          const schema: SchemaElement[] = [
            { name: 'root', num_children: 1 },
            { ...column.element, name: 'c', repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED' },
          ];
          const columnData = [{ name: 'c', data, encoding }];
          const bytes = parquetWriteBuffer({
            columnData,
            schema,
            codec,
            compressors,
            pageSize,
            rowGroupSize: 1000,
          });
          await writeFile(path, new Uint8Array(bytes));
          const file = await readForeignFile(path, 'parquet');
          expect(file.columns[0]).toMatchObject({ way: 'fast', reason: '' });
          expect(await valuesOf(file, path, 0, spanRows)).toEqual(
            data.map((value) => (value === null ? null : column.read(value))),
          );
        }),
        { numRuns },
      );
    },
  );
});

describe('dictionaries with many entries', () => {
  it.each([
    { entries: 256, kind: 'dictionary', codeBytes: 1 },
    { entries: 257, kind: 'dictionary', codeBytes: 2 },
    { entries: 65_536, kind: 'dictionary', codeBytes: 2 },
    { entries: 65_537, kind: 'plain', codeBytes: 0 },
  ])('of $entries are kept as $kind', async ({ entries, kind, codeBytes }) => {
    const path = join(folder, `${entries}.parquet`);
    const numbers = Array.from({ length: 70_000 }, (_, row) => BigInt((row * 7919) % entries));
    const texts = numbers.map((number) => `entry ${number}`);
    const columnData = [
      { name: 'n', data: numbers, type: 'INT64' as const, encoding: dictionary },
      { name: 's', data: texts, type: 'STRING' as const, encoding: dictionary },
    ];
    await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 100_000 })));
    const file = await readForeignFile(path, 'parquet');
    for (const [i, wanted] of [numbers, texts].entries()) {
      expect(await valuesOf(file, path, i)).toEqual(wanted);
      const { spans } = await decodeForeign(readingOf(file, path, i, 0));
      const { column } = spans[0]!;
      expect(column.kind === 'dictionary' ? 'dictionary' : 'plain').toBe(kind);
      if (column.kind === 'dictionary') expect(column.codes.BYTES_PER_ELEMENT).toBe(codeBytes);
    }
  });
});
