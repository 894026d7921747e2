import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { caseCount, fc } from '../cases.js';
import type { ForeignColumn, ForeignFile, ForeignRead } from '../../engine/foreign/foreign-file.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { deltaBytesMax, encodeDelta } from '../../engine/kernels/delta.js';
import { codecNumber, encoding, pageType, physicalType } from '../../engine/parquet/format.js';
import { i32, writeThrift, type ThriftStruct } from '../../engine/parquet/thrift-writer.js';
import { isLogstrataError } from '../../engine/core/errors.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { columnValues, readingOf, valuesOf } from './reading.js';
import { describeUnless } from '../needs.js';

const numRuns = caseCount(30, 2000);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-damage-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Decodes all columns with the fast decoder: each gives values, or an error that names the file. */
async function expectValuesOrProblem(path: string, file: ForeignFile): Promise<void> {
  for (const [i, { way }] of file.columns.entries()) {
    if (way !== 'fast') continue;
    try {
      const values = await valuesOf(file, path, i, 1000);
      expect(values.length).toBe(file.rowGroups.reduce((sum, { rows }) => sum + rows, 0));
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      expect(['damaged', 'limit', 'unsupported']).toContain(error.code);
      expect(error.path).toBe(path);
      if (error.code === 'damaged') expect(error.offset).toBeGreaterThanOrEqual(0);
    }
  }
}

/** Changes and cuts bytes at random, and decodes with the footer of the intact file. */
async function expectDamageIsTold(path: string, runs: number): Promise<void> {
  const whole = await readFile(path);
  const file = await readForeignFile(path, 'parquet');
  const broken = join(folder, 'broken.parquet');
  const change = fc.tuple(fc.nat(), fc.oneof(fc.nat(255), fc.constantFrom(0, 127, 128, 255)));
  const damage = fc.tuple(fc.array(change, { minLength: 1, maxLength: 5 }), fc.option(fc.nat(), { freq: 8 }));
  await fc.assert(
    fc.asyncProperty(damage, async ([changes, cut]) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
      await writeFile(broken, cut === null ? bytes : bytes.subarray(0, cut % bytes.length));
      await expectValuesOrProblem(broken, file);
    }),
    { numRuns: runs },
  );
}

describe('damaged files', () => {
  it.each(['uncompressed', 'snappy', 'zstd', 'lz4_raw', 'gzip'])(
    'are decoded, or refused by name, after changes to %s pages',
    { timeout: 120_000 },
    async (codec) => {
      const columns = [
        'i',
        '(i % 300)::INTEGER',
        "'message ' || i",
        "CASE WHEN i % 3 = 0 THEN NULL ELSE 'host' || (i % 9) END",
        'i / 7',
        'i % 2 = 0',
        'CASE WHEN i % 5 < 2 THEN NULL ELSE i * i END',
      ];
      const path = join(folder, `${codec}.parquet`);
      const selected = columns.map((sql, i) => `${sql} AS c${i}`).join(', ');
      for (const version of ['V1', 'V2']) {
        const options = `FORMAT parquet, COMPRESSION ${codec}, PARQUET_VERSION ${version}`;
        await queryAllDuckDb([`COPY (SELECT ${selected} FROM range(300) t(i)) TO '${path}' (${options})`]);
        await expectDamageIsTold(path, numRuns);
      }
    },
  );

  const samples = /^(delta_|byte_stream|datapage_v2|rle_|alltypes_plain|data_index|hadoop_lz4_comp)/;
  describeUnless(missingCorpus, 'of the Parquet project', () => {
    it.each(parquetCorpus('data').filter(({ name }) => samples.test(name)))(
      'are decoded, or refused by name, after changes to $name',
      { timeout: 120_000 },
      async ({ path }) => {
        await expectDamageIsTold(path, Math.ceil(numRuns / 10));
      },
    );

    it.each(parquetCorpus('bad_data'))('are decoded, or refused by name: $name', async ({ path }) => {
      const file = await readForeignFile(path, 'parquet').catch(() => null);
      if (file !== null) await expectValuesOrProblem(path, file);
    });
  });
});

/** A file that consists of one chunk, and the read of that chunk. */
async function readingOfPages(
  pages: readonly Uint8Array[],
  rows: number,
  column: Partial<ForeignColumn> & Pick<ForeignColumn, 'parquet'>,
  codec: number = codecNumber.none,
): Promise<ForeignRead> {
  const path = join(folder, 'pages.parquet');
  const bytes = Buffer.concat([Buffer.from('PAR1'), ...pages]);
  await writeFile(path, bytes);
  const described: ForeignColumn = {
    name: 'c',
    type: 'string',
    way: 'fast',
    stored: '',
    reason: '',
    values: { kind: 'same' },
    nullable: false,
    ...column,
  };
  const chunk = {
    offset: 4,
    bytes: bytes.length - 4,
    codec,
    uncompressedBytes: 0,
    nullCount: null,
    min: null,
    max: null,
    bloomFilter: null,
  };
  const file: ForeignFile = {
    format: 'parquet',
    rows,
    footerHash: '',
    writtenBy: '',
    columns: [described],
    rowGroups: [{ rows, chunks: [chunk] }],
  };
  return readingOf(file, path, 0, 0);
}

const texts: Pick<ForeignColumn, 'parquet'> = {
  parquet: { type: physicalType.byteArray, valueBytes: 0, isUnsigned: false, scale: 0 },
};
const integers: Pick<ForeignColumn, 'parquet' | 'type'> = {
  type: 'int',
  parquet: { type: physicalType.int64, valueBytes: 0, isUnsigned: false, scale: 0 },
};

/** A data page of version 1. */
function dataPage(
  body: Uint8Array,
  rows: number,
  valueEncoding: number,
  claims: { bytes?: number; content?: number; header?: ThriftStruct } = {},
): Uint8Array {
  const header = {
    1: i32(pageType.dataV1),
    2: i32(claims.content ?? body.length),
    3: i32(claims.bytes ?? body.length),
    5: { 1: i32(rows), 2: i32(valueEncoding), 3: i32(encoding.rle), 4: i32(encoding.rle) },
    ...claims.header,
  };
  return Buffer.concat([writeThrift(header), body]);
}

function dictionaryPage(body: Uint8Array, entries: number): Uint8Array {
  const header = {
    1: i32(pageType.dictionary),
    2: i32(body.length),
    3: i32(body.length),
    7: { 1: i32(entries), 2: i32(0) },
  };
  return Buffer.concat([writeThrift(header), body]);
}

const plainTexts = (...strings: readonly string[]): Buffer =>
  Buffer.concat(
    strings.flatMap((text) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(text));
      return [length, Buffer.from(text)];
    }),
  );

describe('the pages of a chunk', () => {
  const two = plainTexts('a', 'b');
  const entries = dictionaryPage(two, 2);
  const codes = (...bytes: readonly number[]): Uint8Array =>
    dataPage(Uint8Array.from(bytes), 8, encoding.rleDictionary);
  const many = 100_000_000;

  type Case = readonly [
    name: string,
    pages: readonly Uint8Array[],
    rows: number,
    column: Partial<ForeignColumn>,
    message: RegExp,
    codec?: number,
  ];
  const cases: readonly Case[] = [
    ['claim a large body', [dataPage(two, 2, 0, { bytes: many })], 2, texts, /ends after its column chunk/],
    [
      'claim to decompress to a large size',
      [dataPage(two, 2, 0, { content: 1_000_000_000 })],
      2,
      texts,
      /1000000000 bytes/,
    ],
    ['claim many values', [dataPage(two, many, 0)], many, texts, /100000000 values/],
    ['claim more values than they have', [dataPage(two, 1_000_000, 0)], 1_000_000, texts, /do not fill/],
    [
      'have more rows than the row group',
      [dataPage(two, 2, 0)],
      1,
      texts,
      /more rows than the 1 of the row group/,
    ],
    [
      'have fewer rows than the row group',
      [dataPage(two, 2, 0)],
      3,
      texts,
      /2 rows, but the row group has 3/,
    ],
    [
      'have strings that reach beyond the page',
      [dataPage(Uint8Array.of(255, 255, 255, 255, 65), 1, 0)],
      1,
      texts,
      /do not fill/,
    ],
    ['have too few bytes for their numbers', [dataPage(two, 2, 0)], 2, integers, /10 bytes for 2 numbers/],
    [
      'have a code beyond the dictionary',
      [entries, codes(2, 16, 2)],
      8,
      texts,
      /beyond the end of the dictionary/,
    ],
    ['have codes without a dictionary', [codes(1, 16, 0)], 8, texts, /there is no dictionary/],
    [
      'have codes of 33 bits',
      [entries, codes(33, 16, 0, 0, 0, 0, 0)],
      8,
      texts,
      /the dictionary codes are malformed/,
    ],
    ['have no codes', [entries, codes()], 8, texts, /the dictionary codes are malformed/],
    [
      'have an empty run',
      [entries, codes(1, 0, 0, 0, 0, 0, 0)],
      8,
      texts,
      /the dictionary codes are malformed/,
    ],
    [
      'have a run that does not end',
      [entries, codes(1, 255, 255, 255, 255, 255)],
      8,
      texts,
      /the dictionary codes are malformed/,
    ],
    [
      'have a dictionary after a data page',
      [dataPage(two, 2, 0), entries, codes(1, 16, 0)],
      10,
      texts,
      /follows another page/,
    ],
    ['have an unknown encoding', [dataPage(two, 2, 17)], 2, texts, /encoding 17/],
    [
      'have deltas in blocks of no values',
      [dataPage(Uint8Array.of(0, 0, 2, 0), 2, 5)],
      2,
      integers,
      /the delta-encoded integers are malformed/,
    ],
    ['have levels that exceed the page', [dataPage(two, 2, 0)], 2, { ...texts, nullable: true }, /levels/],
    ['have an endless header', [Buffer.alloc(3_000_000, 0x15)], 2, texts, /page header is malformed/],
    [
      'decompress to more bytes than stated',
      [dataPage(gzipSync(Buffer.alloc(10_000_000)), 2, 0, { content: 10 })],
      2,
      texts,
      /does not decompress to 10 bytes/,
      codecNumber.gzip,
    ],
    [
      'decompress to fewer bytes than stated',
      [dataPage(gzipSync(two), 2, 0, { content: 90_000_000 })],
      2,
      texts,
      /does not decompress/,
      codecNumber.gzip,
    ],
    ['are not compressed', [dataPage(two, 2, 0)], 2, texts, /does not decompress/, codecNumber.zstd],
    ['have a wrong checksum', [dataPage(two, 2, 0, { header: { 4: i32(1) } })], 2, texts, /checksum/],
  ];

  it.each(cases.map(([name, ...rest]) => ({ name, rest })))('are refused if they $name', async ({ rest }) => {
    const [pages, rows, column, message, codec] = rest;
    const reading = await readingOfPages(pages, rows, { ...texts, ...column }, codec);
    const error: unknown = await decodeForeign(reading).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'damaged', path: reading.path, rowGroup: 0, column: 'c' });
    expect((error as Error).message).toMatch(message);
    expect((error as { offset: number }).offset).toBeGreaterThanOrEqual(4);
  });

  it('are refused if their strings exceed the memory limit', async () => {
    // Each string but the first equals the previous one.
    const rows = 60_000;
    const first = Buffer.alloc(1_000_000, 0x61);
    const prefixes = new BigInt64Array(rows).fill(BigInt(first.length));
    const suffixes = new BigInt64Array(rows);
    [prefixes[0], suffixes[0]] = [suffixes[0]!, prefixes[0]!];
    const body = new Uint8Array(2 * deltaBytesMax(rows) + first.length);
    const end = encodeDelta(suffixes, rows, body, encodeDelta(prefixes, rows, body, 0));
    body.set(first, end);
    const page = dataPage(body.subarray(0, end + first.length), rows, encoding.deltaByteArray);
    const reading = await readingOfPages([page], rows, texts);
    await expect(decodeForeign(reading)).rejects.toMatchObject({ code: 'damaged', path: reading.path });
  });

  it('are read if they are well-formed', async () => {
    const reading = await readingOfPages([entries, codes(1, 16, 1), dataPage(two, 2, 0)], 10, texts);
    const decoded = await decodeForeign(reading);
    expect(columnValues(decoded.spans[0]!.column)).toEqual([...'bbbbbbbbab']);
    expect(decoded.pages!.firstRows).toEqual([0, 8, 10]);
  });

  it('are read with levels in the older encoding BIT_PACKED', async () => {
    // Rows 0, 2 and 9 have a value. The most significant bit comes first.
    const body = Buffer.concat([Uint8Array.of(0b1010_0000, 0b0100_0000), plainTexts('a', 'b', 'c')]);
    const levels = { 5: { 1: i32(10), 2: i32(0), 3: i32(encoding.bitPacked), 4: i32(encoding.rle) } };
    const page = dataPage(body, 10, 0, { header: levels });
    const decoded = await decodeForeign(await readingOfPages([page], 10, { ...texts, nullable: true }));
    const none = null;
    expect(columnValues(decoded.spans[0]!.column)).toEqual(['a', none, 'b', ...Array(6).fill(none), 'c']);
  });

  it('are read from ZSTD frames without a content size, and skippable frames are skipped', async () => {
    const content = plainTexts('a text', 'another');
    // A skippable frame, then a frame without flags, with a window of one kilobyte and one uncompressed block, the last.
    const blockHeader = [(content.length << 3) | 1, content.length >> 5, 0];
    const frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 0, ...blockHeader, ...content];
    const skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7];
    const page = dataPage(Uint8Array.from([...skipped, ...frame]), 2, 0, { content: content.length });
    const decoded = await decodeForeign(await readingOfPages([page], 2, texts, codecNumber.zstd));
    expect(columnValues(decoded.spans[0]!.column)).toEqual(['a text', 'another']);
  });
});
