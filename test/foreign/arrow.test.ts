import * as arrow from 'apache-arrow';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { columnValue } from '../../engine/columns/column.js';
import type { ForeignFile } from '../../engine/foreign/foreign-file.js';
import { lz4FrameContent } from '../../engine/foreign/page-codec.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { openCompressor } from '../../engine/parquet/compression.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import {
  compressedMessage,
  fileOf,
  messagesOf,
  rawStream,
  streamOf,
  type ArrowMessage,
  type RawField,
} from './arrow-bytes.js';
import { arrowSamples, lz4Frame, tableOf } from './arrow-tables.js';
import { readDamagedCopies } from './damaged-files.js';
import type { OurValue } from './duckdb-values.js';
import { readingOf, valuesOf } from './reading.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-arrow-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

let files = 0;

/** A file, a stream, or a stream of an older version. */
const containers = {
  file: fileOf,
  stream: (messages: readonly ArrowMessage[]) => streamOf(messages),
  'older stream': (messages: readonly ArrowMessage[]) => streamOf(messages, true),
};

async function compressors(): Promise<Record<string, (message: ArrowMessage) => ArrowMessage>> {
  const zstd = await openCompressor('zstd');
  return {
    none: (message) => message,
    lz4: (message) => compressedMessage(message, 0, lz4Frame),
    zstd: (message) => compressedMessage(message, 1, (content) => zstd(content, new Uint8Array(0))),
  };
}

describe('Arrow files and streams written by apache-arrow', () => {
  const names = Object.keys(arrowSamples);
  const tables = fc.integer({ min: 0, max: 60 }).chain((length) =>
    fc.record({
      length: fc.constant(length),
      rows: fc.constantFrom(7, 25, 1000),
      container: fc.constantFrom(...(Object.keys(containers) as (keyof typeof containers)[])),
      codec: fc.constantFrom('none', 'lz4', 'zstd'),
      spanRows: fc.constantFrom(5, 1000),
      columns: fc.record(
        Object.fromEntries(
          names.map((name) => [
            name,
            fc.array(fc.option(arrowSamples[name]!.values), { minLength: length, maxLength: length }),
          ]),
        ),
      ),
    }),
  );

  it('have the values that were written', async () => {
    const compress = await compressors();
    await fc.assert(
      fc.asyncProperty(tables, async ({ rows, container, codec, columns, spanRows, length }) => {
        const path = join(folder, `${files++}.arrow`);
        const typed = Object.fromEntries(
          names.map((name) => [name, { type: arrowSamples[name]!.type, values: columns[name]! }]),
        );
        const messages = messagesOf(arrow.tableToIPC(tableOf(typed, rows), 'stream')).map(compress[codec]!);
        await writeFile(path, containers[container](messages));
        const file = await readForeignFile(path, 'arrow');
        expect(file.rows).toBe(length);
        for (const [i, { name }] of file.columns.entries()) {
          const ours = arrowSamples[name]!.ours as (value: unknown) => OurValue;
          const expected = columns[name]!.map((value) => (value === null ? null : ours(value)));
          expect(await valuesOf(file, path, i, spanRows), name).toEqual(expected);
        }
      }),
      { numRuns: caseCount(20, 1000) },
    );
  });
});

it('16 bytes are a UUID where the extension type says so, and else text or hexadecimal digits', async () => {
  const type = new arrow.FixedSizeBinary(16);
  const bytes = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
  const uuid = new Map([['ARROW:extension:name', 'arrow.uuid']]);
  const fields = [new arrow.Field('id', type, true, uuid), new arrow.Field('raw', type, true)];
  const children = [bytes, bytes].map((value) => arrow.vectorFromArray([value, null], type).data[0]!);
  const data = arrow.makeData({ type: new arrow.Struct(fields), length: 2, nullCount: 0, children });
  const batch = new arrow.RecordBatch(new arrow.Schema(fields), data as arrow.Data<arrow.Struct>);
  const path = join(folder, `${files++}.arrow`);
  await writeFile(path, arrow.tableToIPC(new arrow.Table(batch), 'file'));
  const file = await readForeignFile(path, 'arrow');
  expect(file.columns.map(({ stored }) => stored)).toEqual(['uuid', 'binary(16)']);
  expect(await valuesOf(file, path, 0, 10)).toEqual(['01234567-89ab-cdef-0123-456789abcdef', null]);
  expect(await valuesOf(file, path, 1, 10)).toEqual([bytes.toString('hex'), null]);
});

/** The bytes of a typed array, as a buffer holds them. */
function raw(values: ArrayBufferView): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

const none = new Uint8Array(0);
/** Validity of three rows, of which rows 0 and 2 have a value. */
const firstAndLast = Uint8Array.of(0b101);
const letters = Buffer.from('abcdefghijklmnopqrstuvwxyz');
const int32 = { name: 'i', type: 2, parameters: [32, 1] };
const utf8 = { name: 's', type: 5 };

interface RawCase {
  readonly field: Omit<RawField, 'name'>;
  readonly nodes?: readonly (readonly [length: number, nulls: number])[];
  readonly buffers: readonly Uint8Array[];
  readonly viewBuffers?: readonly number[];
  readonly expected: readonly OurValue[];
}

/** Buffers in the layout of the format, by the type numbers of Schema.fbs. */
const rawCases: Record<string, RawCase> = {
  null: { field: { type: 1 }, nodes: [[3, 3]], buffers: [], expected: [null, null, null] },
  'timestamp in us': {
    field: { type: 10, parameters: [2] },
    buffers: [none, raw(BigInt64Array.of(-1n, 1999n, -1_000_001n))],
    expected: [-1n, 1n, -1001n],
  },
  'timestamp in ns with gaps': {
    field: { type: 10, parameters: [3] },
    nodes: [[3, 1]],
    buffers: [firstAndLast, raw(BigInt64Array.of(-1n, 7n, 1_700_000_000_123_456_789n))],
    expected: [-1n, null, 1_700_000_000_123n],
  },
  duration: {
    field: { type: 18, parameters: [2] },
    buffers: [none, raw(BigInt64Array.of(0n, -1_500_000n, 90_061_000_001n))],
    expected: ['PT0S', 'PT-1.5S', 'PT25H1M1.000001S'],
  },
  'interval of months': {
    field: { type: 11, parameters: [0] },
    buffers: [none, raw(Int32Array.of(14, -1, 0))],
    expected: ['P1Y2M', 'P-1M', 'PT0S'],
  },
  'interval of days and ms': {
    field: { type: 11, parameters: [1] },
    buffers: [none, raw(Int32Array.of(1, 0, 0, 1001, -2, 60_000))],
    expected: ['P1D', 'PT1.001S', 'P-2DT1M'],
  },
  'interval of all': {
    field: { type: 11, parameters: [2] },
    buffers: [none, raw(BigInt64Array.of((2n << 32n) | 1n, 5n, 0n, 0n, 13n, 3_600_000_000_000n))],
    expected: ['P1M2DT0.000000005S', 'PT0S', 'P1Y1MT1H'],
  },
  'time in ns': {
    field: { type: 9, parameters: [3, 64] },
    buffers: [none, raw(BigInt64Array.of(0n, 1n, 86_399_500_000_000n))],
    expected: ['00:00:00', '00:00:00.000000001', '23:59:59.5'],
  },
  'decimal of 32 bits': {
    field: { type: 7, parameters: [9, 2, 32] },
    buffers: [none, raw(Int32Array.of(-5, 100, 123_456_789))],
    expected: [-0.05, 1, 1_234_567.89],
  },
  'decimal of 128 bits': {
    field: { type: 7, parameters: [38, 3, 128] },
    buffers: [none, raw(BigInt64Array.of(-1n, -1n, 0n, 1n, 5n, 0n))],
    expected: ['-0.001', '18446744073709551.616', '0.005'],
  },
  'float of 16 bits': {
    field: { type: 3, parameters: [0] },
    buffers: [none, raw(Uint16Array.of(0x3c00, 0x7e00, 0xc000))],
    expected: [1, null, -2],
  },
  'binary that is no UTF-8': {
    field: { type: 4 },
    buffers: [none, raw(Int32Array.of(0, 1, 1, 3)), Buffer.of(0xff, 0x61, 0xc3)],
    expected: ['ff', '', '61c3'],
  },
  'list views': {
    field: { type: 25, children: [int32] },
    nodes: [
      [3, 0],
      [4, 0],
    ],
    buffers: [
      none,
      raw(Int32Array.of(2, 0, 4)),
      raw(Int32Array.of(2, 3, 0)),
      none,
      raw(Int32Array.of(1, 2, 3, 4)),
    ],
    expected: ['[3,4]', '[1,2,3]', '[]'],
  },
  'runs of text': {
    field: { type: 22, children: [{ ...int32, name: 'run_ends' }, utf8] },
    nodes: [
      [3, 0],
      [2, 0],
      [2, 1],
    ],
    buffers: [none, raw(Int32Array.of(2, 3)), Uint8Array.of(0b01), raw(Int32Array.of(0, 3, 3)), letters],
    expected: ['abc', 'abc', null],
  },
  'a dense union': {
    field: { type: 14, parameters: [1], children: [int32, utf8] },
    nodes: [
      [3, 0],
      [2, 1],
      [1, 0],
    ],
    buffers: [
      Uint8Array.of(0, 1, 0),
      raw(Int32Array.of(1, 0, 0)),
      Uint8Array.of(0b10),
      raw(Int32Array.of(5, 7)),
      none,
      raw(Int32Array.of(0, 2)),
      letters,
    ],
    expected: ['7', '"ab"', null],
  },
  'a sparse union': {
    field: { type: 14, parameters: [0], children: [int32, utf8] },
    nodes: [
      [3, 0],
      [3, 0],
      [3, 0],
    ],
    buffers: [
      Uint8Array.of(1, 0, 1),
      none,
      raw(Int32Array.of(5, 6, 7)),
      none,
      raw(Int32Array.of(0, 1, 2, 4)),
      letters,
    ],
    expected: ['"a"', '6', '"cd"'],
  },
  'views of long text': {
    field: { type: 24 },
    viewBuffers: [1],
    buffers: [
      none,
      Buffer.concat([
        raw(Int32Array.of(20)),
        letters.subarray(2, 6),
        raw(Int32Array.of(0, 2)),
        raw(Int32Array.of(12)),
        letters.subarray(0, 12),
        raw(Int32Array.of(0, 0, 0, 0)),
      ]),
      letters,
    ],
    expected: ['cdefghijklmnopqrstuv', 'abcdefghijkl', ''],
  },
};

describe('Arrow streams of types that apache-arrow does not write', () => {
  it.each(Object.entries(rawCases))(
    'have the values of %s',
    async (name, { field, nodes, buffers, viewBuffers, expected }) => {
      const path = join(folder, `${files++}.arrow`);
      await writeFile(path, rawStream([{ name, ...field }], 3, nodes ?? [[3, 0]], buffers, viewBuffers));
      const file = await readForeignFile(path, 'arrow');
      expect(await valuesOf(file, path, 0)).toEqual(expected);
      expect(await valuesOf(file, path, 0, 1)).toEqual(expected);
    },
  );
});

describe('the description of an Arrow file', () => {
  const table = (first: number): arrow.Table =>
    new arrow.Table({
      n: arrow.vectorFromArray([first, null, 3], new arrow.Int32()),
      t: arrow.vectorFromArray([0, 1, null], new arrow.TimestampMillisecond()),
    });

  it('has its columns, their nulls, and a hash that depends on its values too', async () => {
    const describe = async (bytes: Uint8Array): Promise<ForeignFile> => {
      const path = join(folder, `${files++}.arrow`);
      await writeFile(path, bytes);
      return await readForeignFile(path, 'arrow');
    };
    const one = await describe(arrow.tableToIPC(table(1), 'file'));
    expect(one.columns.map(({ name, type, way, stored }) => `${name} ${type} ${way} ${stored}`)).toEqual([
      'n int complete int32',
      't time complete timestamp[ms]',
    ]);
    expect(one.rowGroups.map(({ rows, chunks }) => [rows, chunks.map(({ nullCount }) => nullCount)])).toEqual(
      [[3, [1, 1]]],
    );
    expect(await describe(arrow.tableToIPC(table(1), 'file'))).toEqual(one);
    expect((await describe(arrow.tableToIPC(table(2), 'file'))).footerHash).not.toBe(one.footerHash);
    const stream = await describe(arrow.tableToIPC(table(1), 'stream'));
    expect(stream.columns).toEqual(one.columns);
  });

  it('allows reading only the bytes that the wanted span needs', async () => {
    const rows = 10_000;
    const path = join(folder, 'long.arrow');
    const values = Array.from({ length: rows }, (_, i) => i);
    const long = new arrow.Table({
      n: arrow.vectorFromArray(values.map(BigInt), new arrow.Int64()),
      s: arrow.vectorFromArray(values.map(String), new arrow.Utf8()),
    });
    await writeFile(path, arrow.tableToIPC(long, 'file'));
    const file = await readForeignFile(path, 'arrow');
    const read = { ...readingOf(file, path, 0, 0, 1000), wanted: 7 };
    const decoded = await decodeForeign(read);
    expect(decoded.bytesRead).toBe(8000);
    expect(decoded.spans.map(({ span }) => span)).toEqual([7]);
    expect(columnValue(decoded.spans[0]!.column, 0)).toBe(7000n);
  });

  it('is refused for other files, older formats, and files that are cut off', async () => {
    const path = join(folder, 'bad.arrow');
    const whole = arrow.tableToIPC(table(1), 'file');
    for (let length = 0; length < whole.length; length++) {
      await writeFile(path, whole.subarray(0, length));
      await expect(readForeignFile(path, 'arrow')).rejects.toMatchObject({ code: 'damaged', path });
    }
    await writeFile(path, 'FEA1 and more');
    await expect(readForeignFile(path, 'arrow')).rejects.toMatchObject({ code: 'unsupported', path });
    await writeFile(path, 'a log, which is no Arrow file at all');
    await expect(readForeignFile(path, 'arrow')).rejects.toMatchObject({ code: 'damaged', path });
    await expect(readForeignFile(join(folder, 'none'), 'arrow')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('LZ4 frames', () => {
  it('are decompressed if blocks refer to earlier blocks', () => {
    // "abcd" as literals; then a block that copies 5 bytes from a distance of 4, twice, and ends with a literal.
    const blocks = [Buffer.of(0x40, ...letters.subarray(0, 4)), Buffer.of(0x01, 4, 0, 0x10, 0x7a)];
    const sized = blocks.flatMap((block) => [raw(Int32Array.of(block.length)), block]);
    const head = Buffer.of(0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0);
    const frame = Buffer.concat([head, ...sized, Buffer.alloc(4)]);
    expect(Buffer.from(lz4FrameContent(frame, 10)).toString()).toBe('abcdabcdaz');
    expect(() => lz4FrameContent(frame, 9)).toThrow(/longer than the page says/);
    expect(() => lz4FrameContent(frame, 11)).toThrow(/10 bytes, expected 11/);
  });
});

describe('damaged Arrow files', () => {
  it('are read, or refused with an error that names the file, in limited time and memory', async () => {
    const compress = await compressors();
    const [sample] = fc.sample(
      fc.record(
        Object.fromEntries(
          Object.entries(arrowSamples).map(([name, { values }]) => [
            name,
            fc.array(fc.option(values), { minLength: 30, maxLength: 30 }),
          ]),
        ),
      ),
      { numRuns: 1, seed: 1 },
    );
    const typed = Object.fromEntries(
      Object.entries(sample!).map(([name, values]) => [name, { type: arrowSamples[name]!.type, values }]),
    );
    const messages = messagesOf(arrow.tableToIPC(tableOf(typed, 20), 'stream'));
    const copies = Object.values(compress).flatMap((way) => [
      fileOf(messages.map(way)),
      streamOf(messages.map(way)),
    ]);
    const rawStreams = Object.entries(rawCases).map(([name, { field, nodes, buffers, viewBuffers }]) =>
      rawStream([{ name, ...field }], 3, nodes ?? [[3, 0]], buffers, viewBuffers),
    );
    const numRuns = caseCount(150, 10_000);
    await readDamagedCopies(
      [...copies, ...copies, ...rawStreams],
      'arrow',
      join(folder, 'copy.arrow'),
      0,
      numRuns,
    );
  });
});
