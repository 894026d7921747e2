import { parquetMetadata, parquetReadObjects, type Compressors } from 'hyparquet';
import { expect, test } from 'vitest';
import { batchFromRows } from '../model/rows.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { openDecompressor, type Decompress } from '../../engine/parquet/compression.js';
import { cursorsOf, fileBytes, mixedRows, mixedSchema, sealBatches } from './segment-sample.js';

/** hyparquet has no decoders for these codecs; the test gives it ours, which other tests compare with those of DuckDB. */
async function compressors(): Promise<Compressors> {
  const lz4 = await openDecompressor('lz4');
  const zstd = await openDecompressor('zstd');
  return {
    LZ4_RAW: (input, length) => filled(lz4, input, length),
    ZSTD: (input, length) => filled(zstd, input, length),
  };
}

function filled(decompress: Decompress, input: Uint8Array, length: number): Uint8Array {
  const target = new Uint8Array(length);
  if (!decompress(input, target)) expect.fail('a malformed page');
  return target;
}

test.each(['lz4', 'zstd'] as const)('hyparquet reads segments that were sealed with %s', async (codec) => {
  const directory = new MemoryDirectory();
  const rowGroups = [mixedRows(3000, 1), mixedRows(1, 2), mixedRows(777, 3)];
  const batches = rowGroups.map((rows) => batchFromRows(mixedSchema, rows));
  const entry = await sealBatches(directory, 'a.parquet', mixedSchema, batches, codec);
  const bytes = await fileBytes(directory, 'a.parquet');
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;

  const metadata = parquetMetadata(file);
  expect(metadata.row_groups.map((group) => Number(group.num_rows))).toEqual([3000, 1, 777]);
  expect(metadata.created_by).toMatch(/^logstrata version /);
  const first = metadata.row_groups[0]!.columns;
  expect(first[2]!.meta_data!.statistics).toMatchObject({
    min_value: '',
    max_value: '日本語😀',
    null_count: 0n,
  });
  expect(first[9]!.meta_data!.statistics!.null_count).toBe(3000n);

  const read = await parquetReadObjects({ file, compressors: await compressors() });
  const cursors = cursorsOf(entry.runs);
  const rows = rowGroups.flat();
  expect(read.length).toBe(rows.length);
  rows.forEach((row, i) => {
    const found = read[i] as Record<string, unknown>;
    expect(found._cursor).toBe(cursors[i]);
    mixedSchema.fields.forEach(({ name, type }, k) => {
      const value = row[k]!;
      const cell = found[name] ?? null;
      const answered = cell instanceof Date ? BigInt(cell.getTime()) : cell;
      expect(answered).toEqual(value !== null && (type === 'int' || type === 'time') ? BigInt(value) : value);
    });
  });
});
