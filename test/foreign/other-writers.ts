import * as arrow from 'apache-arrow';
import { parquetWriteBuffer, type ColumnSource } from 'hyparquet-writer';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type * as ParquetWasm from 'parquet-wasm/node';
import { importPeer } from '../../bench/sides/peer-package.js';
import { openCompressor } from '../../engine/parquet/compression.js';
import { writeParquetJs, type ParquetJsField } from './parquetjs.js';
import { missingChdb } from '../far/with-chdb.js';

/** A program that writes Parquet, and the files that it is asked to write. */
export interface OtherWriter {
  readonly name: string;
  /** Why it can't be used here. */
  readonly whyNot?: string | null;
  /** As `docs/archives-corpus.md` lists them: every codec with every kind of page. */
  readonly codecs: readonly string[];
  readonly pages: readonly string[];
  write(path: string, codec: string, pages: string): Promise<void>;
}

const rows = 2500;
const rowGroupRows = 1100;
const numbers = Array.from({ length: rows }, (_, i) => i);
const startMs = Date.UTC(2024, 1, 29);

/** Values that repeat and values that don't, with nulls and without. */
const texts = numbers.map((i) => `zażółć ${(i * 7919) % 10_007}`);
const hosts = numbers.map((i) => (i % 11 === 0 ? null : `host-${i % 40}`));
const floats = numbers.map((i) => (i % 5 === 0 ? null : i % 17 === 0 ? NaN : i / 7));
const longs = numbers.map((i) => BigInt(i) * 1_000_003n - 2n ** 40n);

const hyparquet: OtherWriter = {
  name: 'hyparquet-writer',
  codecs: ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD', 'LZ4_RAW', 'BROTLI'],
  pages: ['dictionary or PLAIN', 'deltas', 'BYTE_STREAM_SPLIT'],
  async write(path, codec, pages) {
    const zstd = await openCompressor('zstd');
    const lz4 = await openCompressor('lz4');
    const copied = (compress: typeof zstd) => (bytes: Uint8Array) =>
      compress(bytes, new Uint8Array(2 * bytes.length + 64)).slice();
    const coded = (type: 'text' | 'integer' | 'float'): Pick<ColumnSource, 'encoding'> => {
      if (pages === 'deltas' && type !== 'float')
        return { encoding: type === 'text' ? 'DELTA_BYTE_ARRAY' : 'DELTA_BINARY_PACKED' };
      return pages === 'BYTE_STREAM_SPLIT' && type === 'float' ? { encoding: 'BYTE_STREAM_SPLIT' } : {};
    };
    const columnData: ColumnSource[] = [
      { name: 'i', type: 'INT32', data: numbers, ...coded('integer') },
      { name: 'l', type: 'INT64', data: longs, nullable: false, ...coded('integer') },
      { name: 'f', type: 'DOUBLE', data: floats, ...coded('float') },
      { name: 'single', type: 'FLOAT', data: numbers.map((i) => i / 4), ...coded('float') },
      { name: 't', type: 'STRING', data: texts, ...coded('text'), bloomFilter: true },
      { name: 'h', type: 'STRING', data: hosts },
      { name: 'b', type: 'BOOLEAN', data: numbers.map((i) => i % 3 === 0) },
      { name: 'at', type: 'TIMESTAMP', data: numbers.map((i) => new Date(startMs + i * 1001)) },
      { name: 'bytes', type: 'BYTE_ARRAY', data: numbers.map((i) => Uint8Array.of(i & 255, 0xc3, 0x28)) },
      { name: 'half', type: 'FLOAT16', data: numbers.map((i) => i / 8) },
      {
        name: 'id',
        type: 'UUID',
        data: numbers.map((i) => `01234567-89ab-cdef-0123-${String(i).padStart(12, '0')}`),
      },
      { name: 'json', type: 'JSON', data: numbers.map((i) => ({ i, list: [i, null] })) },
    ];
    const bytes = parquetWriteBuffer({
      columnData,
      codec: codec as 'SNAPPY',
      compressors: {
        GZIP: (input) => gzipSync(input),
        BROTLI: (input) => brotliCompressSync(input),
        ZSTD: copied(zstd),
        LZ4_RAW: copied(lz4),
      },
      rowGroupSize: rowGroupRows,
      pageSize: 4096,
    });
    await writeFile(path, new Uint8Array(bytes));
  },
};

const parquetJs: OtherWriter = {
  name: 'parquetjs-lite',
  codecs: ['UNCOMPRESSED', 'SNAPPY', 'GZIP'],
  pages: ['pages of version 1', 'pages of version 2'],
  async write(path, compression, pages) {
    const types: Record<string, Omit<ParquetJsField, 'compression'>> = {
      i: { type: 'INT32' },
      l: { type: 'INT64', optional: true },
      u: { type: 'UINT_32' },
      f: { type: 'DOUBLE', optional: true },
      t: { type: 'UTF8' },
      h: { type: 'UTF8', optional: true },
      b: { type: 'BOOLEAN' },
      at: { type: 'TIMESTAMP_MILLIS' },
      us: { type: 'TIMESTAMP_MICROS' },
      day: { type: 'DATE' },
      json: { type: 'JSON' },
      list: { type: 'INT32', repeated: true },
    };
    const fields = Object.fromEntries(
      Object.entries(types).map(([name, field]) => [name, { ...field, compression }]),
    );
    const written = numbers.map((i) => ({
      i: i - 1250,
      ...(i % 9 === 0 ? {} : { l: i * 1_000_003 }),
      u: 2_147_480_000 + (i % 3000),
      ...(floats[i] === null || Number.isNaN(floats[i]) ? {} : { f: floats[i] }),
      t: texts[i],
      ...(hosts[i] === null ? {} : { h: hosts[i] }),
      b: i % 3 === 0,
      at: new Date(startMs + i * 1001),
      us: new Date(startMs + i * 1001),
      day: new Date(startMs + i * 86_400_000),
      json: { i },
      list: [i, i + 1].slice(i % 3),
    }));
    const useDataPageV2 = pages === 'pages of version 2';
    await writeParquetJs(path, fields, written, { useDataPageV2, rowGroupSize: rowGroupRows, pageSize: 300 });
  },
};

const parquetWasm: OtherWriter = {
  name: 'parquet-wasm',
  codecs: ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'LZ4', 'ZSTD', 'LZ4_RAW'],
  pages: ['V1', 'V2', 'V2 without dictionaries'],
  write(path, codec, pages) {
    const wasm = createRequire(import.meta.url)('parquet-wasm/node') as typeof ParquetWasm;
    const vectors = {
      i: arrow.vectorFromArray(numbers, new arrow.Int32()),
      l: arrow.vectorFromArray(longs, new arrow.Int64()),
      u: arrow.vectorFromArray(numbers, new arrow.Uint16()),
      f: arrow.vectorFromArray(floats, new arrow.Float64()),
      t: arrow.vectorFromArray(texts, new arrow.Utf8()),
      h: arrow.vectorFromArray(hosts, new arrow.Utf8()),
      b: arrow.vectorFromArray(
        numbers.map((i) => i % 3 === 0),
        new arrow.Bool(),
      ),
      at: arrow.vectorFromArray(
        numbers.map((i) => new Date(startMs + i)),
        new arrow.TimestampMillisecond(),
      ),
      us: arrow.vectorFromArray(
        numbers.map((i) => startMs + i),
        new arrow.TimestampMicrosecond('UTC'),
      ),
      list: arrow.vectorFromArray(
        numbers.map((i) => [i, i + 1].slice(i % 3)),
        new arrow.List(new arrow.Field('item', new arrow.Int32(), true)),
      ),
    };
    const stream = arrow.tableToIPC(new arrow.Table(vectors), 'stream');
    const properties = new wasm.WriterPropertiesBuilder()
      .setCompression(wasm.Compression[codec as 'SNAPPY'])
      .setWriterVersion(pages === 'V1' ? wasm.WriterVersion.V1 : wasm.WriterVersion.V2)
      .setDictionaryEnabled(pages !== 'V2 without dictionaries')
      .setMaxRowGroupSize(rowGroupRows)
      .setDataPageSizeLimit(4096)
      .build();
    return writeFile(path, wasm.writeParquet(wasm.Table.fromIPCStream(stream), properties));
  },
};

interface ChdbModule {
  readonly Session: new (path: string) => { query(sql: string, format?: string): string; close(): void };
}

/** ClickHouse within the process, which writes Bloom filters and page indexes unless it is told otherwise. */
const chdb: OtherWriter = {
  whyNot: missingChdb,
  name: 'chdb',
  codecs: ['none', 'snappy', 'gzip', 'zstd', 'lz4', 'brotli'],
  pages: ['dictionaries', 'no dictionaries'],
  async write(path, codec, pages) {
    const { Session } = await importPeer<ChdbModule>('clickhouse', 'chdb');
    const session = new Session(`${path}.chdb`);
    const select = `SELECT toInt32(number) - 2500 AS i, toInt64(number) * 1000003 AS l, toUInt16(number % 60000) AS u,
      number % 5 = 0 ? NULL : number / 7 AS f, concat('zażółć ', toString(number * 7919 % 10007)) AS t,
      toLowCardinality(concat('host-', toString(number % 40))) AS h, number % 3 = 0 AS b, toDateTime64('2024-02-29 00:00:00', 3, 'UTC') + number AS at,
      toDateTime64('2024-02-29 00:00:00', 6, 'UTC') + number AS us, toDateTime('2024-02-29 00:00:00', 'UTC') + number AS s, toDate32('2024-02-29') + number AS day,
      toDecimal64(number / 4, 2) AS price, toFixedString(leftPad(toString(number), 6, '0'), 6) AS fixed, [number, number + 1] AS list,
      map('a', number) AS pairs, tuple(number, 'x') AS pair FROM numbers(${rows})`;
    const settings = `engine_file_truncate_on_insert = 1, output_format_parquet_compression_method = '${codec}', output_format_parquet_row_group_size = ${rowGroupRows},
      output_format_parquet_data_page_size = 4096, output_format_parquet_batch_size = 64${pages === 'dictionaries' ? '' : ', output_format_parquet_max_dictionary_size = 0'}`;
    try {
      session.query(
        `INSERT INTO FUNCTION file('${path}', Parquet) ${select} SETTINGS max_block_size = ${rowGroupRows}, ${settings}`,
      );
    } finally {
      session.close();
    }
  },
};

/** All writers. ClickHouse takes half a gigabyte, and may be missing. */
export const otherWriters: readonly OtherWriter[] = [hyparquet, parquetJs, parquetWasm, chdb];
