import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codecNumber, encoding, physicalType, repetition } from '../../engine/parquet/format.js';
import { i32, i64, writeThrift, type ThriftStruct } from '../../engine/parquet/thrift-writer.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import type { OurValue } from './duckdb-values.js';
import { valuesOf } from './reading.js';
import { describeUnless } from '../needs.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-pages-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

interface Page {
  readonly entries: number;
  readonly body: Uint8Array;
  readonly claimed?: number;
  readonly encoding?: number;
  readonly levels?: number;
}

const int32Column: ThriftStruct[] = [{ 1: i32(physicalType.int32), 3: i32(repetition.optional), 4: 'n' }];
/** `optional group l (LIST) { repeated group list { optional int32 element } }` */
const listColumn: ThriftStruct[] = [
  { 3: i32(repetition.optional), 4: 'l', 5: i32(1), 6: i32(3) },
  { 3: i32(repetition.repeated), 4: 'list', 5: i32(1) },
  { 1: i32(physicalType.int32), 3: i32(repetition.optional), 4: 'element' },
];
const textColumn: ThriftStruct[] = [{ 1: i32(physicalType.byteArray), 3: i32(repetition.required), 4: 's' }];

/** The values of a file with one column and one data page of version 1. */
async function valuesOfPage(
  name: string,
  column: readonly ThriftStruct[],
  rows: number,
  page: Page,
  codec: number = codecNumber.none,
): Promise<OurValue[]> {
  const levels = i32(page.levels ?? encoding.rle);
  const header = writeThrift({
    1: i32(0),
    2: i32(page.claimed ?? page.body.length),
    3: i32(page.body.length),
    5: { 1: i32(page.entries), 2: i32(page.encoding ?? encoding.plain), 3: levels, 4: levels },
  });
  const bytes = header.length + page.body.length;
  const leaf = column.at(-1)!;
  const chunk = {
    3: {
      1: leaf[1],
      2: [],
      3: [],
      4: i32(codec),
      5: i64(page.entries),
      6: i64(bytes),
      7: i64(bytes),
      9: i64(4),
    },
  };
  const footer = writeThrift({
    1: i32(1),
    2: [{ 4: 'schema', 5: i32(1) }, ...column],
    3: i64(rows),
    4: [{ 1: [chunk], 3: i64(rows) }],
  });
  const tail = Buffer.alloc(8, 'xxxxPAR1');
  tail.writeUInt32LE(footer.length);
  const path = join(folder, `${name.replaceAll(' ', '-')}.parquet`);
  await writeFile(path, Buffer.concat([Buffer.from('PAR1'), header, page.body, footer, tail]));
  const file = await readForeignFile(path, 'parquet');
  const columns = file.columns.map((each) => ({ ...each, way: 'complete' as const }));
  return await valuesOf({ ...file, columns }, path, 0);
}

function int32s(...values: number[]): Uint8Array {
  return new Uint8Array(Int32Array.from(values).buffer);
}

/** A run of equal levels of at most 8 bits, after its length. */
function levelRun(count: number, level: number): Buffer {
  const bytes: number[] = [];
  for (let rest = count * 2; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      bytes.push(rest, level);
      break;
    }
    bytes.push((rest % 128) + 128);
  }
  return Buffer.concat([int32s(bytes.length), Buffer.from(bytes)]);
}

describe('levels in the older encoding BIT_PACKED', () => {
  it('are read from the most significant bit on', async () => {
    const body = Buffer.concat([Uint8Array.of(0b10110111, 0b01000000), int32s(1, 2, 3, 4, 5, 6, 7)]);
    const page = { entries: 10, body, levels: encoding.bitPacked };
    expect(await valuesOfPage('bits', int32Column, 10, page)).toEqual(
      [1, null, 2, 3, null, 4, 5, 6, null, 7].map((value) => (value === null ? null : BigInt(value))),
    );
  });

  it('are read for lists', async () => {
    // Rows: [7, null], null, [], [8]. Repetition levels take one bit, definition levels two.
    const repetitions = Uint8Array.of(0b01000000);
    const definitions = Uint8Array.of(0b11_10_00_01, 0b11_000000);
    const body = Buffer.concat([repetitions, definitions, int32s(7, 8)]);
    const page = { entries: 5, body, levels: encoding.bitPacked };
    expect(await valuesOfPage('list bits', listColumn, 4, page)).toEqual(['[7,null]', null, '[]', '[8]']);
  });
});

describe('pages that claim more data than they have', () => {
  const gigabyte = 2 ** 30;
  /** Strings that each begin with the whole previous one: a few bytes for each, and any length for the last. */
  const growing = (): Uint8Array => {
    const count = 20_001;
    const zigzag = (value: number): number[] =>
      value < 64 ? [2 * value] : [((2 * value) % 128) + 128, (2 * value) >> 7];
    const header = (first: number, delta: number): number[] => {
      const blocks = Array.from({ length: Math.ceil((count - 1) / 1024) }, () => [
        ...zigzag(delta),
        0,
      ]).flat();
      return [
        0x80,
        0x08,
        1,
        (count & 127) | 128,
        ((count >> 7) & 127) | 128,
        count >> 14,
        ...zigzag(first),
        ...blocks,
      ];
    };
    // Prefixes grow by 1000 from 0 on; the suffix of each has 1000 bytes, as the first.
    return Buffer.concat([
      Buffer.from(header(0, 1000)),
      Buffer.from(header(1000, 0)),
      Buffer.alloc(1000 * count, 'a'),
    ]);
  };

  it.each<readonly [string, readonly ThriftStruct[], number, Page, number, string, RegExp]>([
    ['values', textColumn, 1, { entries: 2 ** 31 - 1, body: int32s(0) }, 0, 'damaged', /2147483647 values/],
    [
      'content',
      textColumn,
      1,
      { entries: 1, body: int32s(0), claimed: gigabyte },
      1,
      'limit',
      /page has 1073741824 bytes/,
    ],
    [
      'strings',
      textColumn,
      3,
      { entries: 3, body: int32s(0, 0) },
      0,
      'damaged',
      /the page is too short for 3 strings/,
    ],
    [
      'less than its gzip holds',
      textColumn,
      1,
      { entries: 1, body: gzipSync(Buffer.alloc(64 * 1024 * 1024)), claimed: 100 },
      codecNumber.gzip,
      'damaged',
      /decompress/,
    ],
    [
      'strings that grow',
      textColumn,
      20_001,
      { entries: 20_001, body: growing(), encoding: encoding.deltaByteArray },
      0,
      'damaged',
      /the page has more than/,
    ],
  ])('%s end in an error', async (name, column, rows, page, codec, code, message) => {
    const error: unknown = await valuesOfPage(name, column, rows, page, codec).catch(
      (caught: unknown) => caught,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string });
    expect((error as Error).message).toContain(`${name.replaceAll(' ', '-')}.parquet: column`);
  });

  it('values whose JSON would be too long end in an error', async () => {
    const first = [2, 0];
    const others = [...levelRun(9_999_999, 1).subarray(4)];
    const repetitions = Buffer.concat([
      int32s(first.length + others.length),
      Buffer.from([...first, ...others]),
    ]);
    const body = Buffer.concat([repetitions, levelRun(10_000_000, 2)]);
    await expect(valuesOfPage('nulls', listColumn, 1, { entries: 10_000_000, body })).rejects.toMatchObject({
      code: 'limit',
      message: expect.stringMatching(/column "l" of row group 0: a nested value has more than/) as string,
    });
  });
});

describeUnless(missingCorpus, 'files of geometries', () => {
  const files = parquetCorpus('data/geospatial');

  it.each(files)('$name has the points that its texts state', async ({ path }) => {
    const file = await readForeignFile(path, 'parquet');
    const at = (name: string): number => file.columns.findIndex((column) => column.name === name);
    const geometries = await valuesOf(file, path, Math.max(at('geometry'), at('geography')));
    for (const geometry of geometries)
      if (geometry !== null) expect(JSON.parse(geometry as string)).toHaveProperty('type');
    if (at('wkt') < 0) return;
    const texts = await valuesOf(file, path, at('wkt'));
    const pointsOf = (value: unknown): (number | null)[] => {
      if (Array.isArray(value)) return value.flatMap(pointsOf);
      if (typeof value === 'number' || value === null) return [value];
      const { coordinates, geometries: held } = value as { coordinates?: unknown; geometries?: unknown[] };
      return coordinates === undefined ? held!.flatMap(pointsOf) : pointsOf(coordinates);
    };
    for (const [i, text] of texts.entries()) {
      expect(geometries[i] === null).toBe(text === null);
      if (text === null) continue;
      const words = (text as string).replace(/[A-Z]+/g, ' ').match(/nan|[-+.\de]+/g) ?? [];
      const points = words.map((word) => (word === 'nan' ? null : Number(word)));
      const found = pointsOf(JSON.parse(geometries[i] as string));
      if (!(text as string).includes('EMPTY')) expect(found, text as string).toEqual(points);
    }
  });
});
