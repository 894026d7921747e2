import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { FieldType, Schema } from '../../engine/core/schema.js';
import type { Value } from '../model/dataset.js';

export interface ParquetShape {
  readonly rowGroupRows: number;
  /** Approximate number of bytes of a page. */
  readonly pageBytes: number;
  /** Without statistics and compression, so that the footer does not depend on the values. */
  readonly isPlain?: boolean;
  /** Without compression, so that the places of pages do not depend on the values. */
  readonly isUncompressed?: boolean;
  /** Whether pages are compressed with Brotli, which our own kernels do not decompress. */
  readonly isBrotli?: boolean;
}

const storedTypes = {
  int: 'INT64',
  time: 'INT64',
  float: 'DOUBLE',
  string: 'STRING',
  bool: 'BOOLEAN',
} as const satisfies Record<FieldType, string>;

/** Rows as a Parquet file of another program. Times are plain integers, bools are booleans. */
export function parquetBytes(
  { fields }: Schema,
  rows: readonly (readonly Value[])[],
  { rowGroupRows, pageBytes, isPlain = false, isUncompressed = false, isBrotli = false }: ParquetShape,
): Uint8Array {
  const columnData = fields.map(({ name, type, attached }, field) => ({
    name: attached?.column ?? name,
    type: storedTypes[type],
    nullable: true,
    data: rows.map((row) => (type === 'bool' && row[field] !== null ? row[field] === 1n : row[field]!)),
  }));
  return new Uint8Array(
    parquetWriteBuffer({
      columnData,
      rowGroupSize: rowGroupRows,
      pageSize: pageBytes,
      ...(isBrotli
        ? {
            codec: 'BROTLI' as const,
            compressors: { BROTLI: (input: Uint8Array) => brotliCompressSync(input) },
          }
        : {}),
      ...(isUncompressed ? { codec: 'UNCOMPRESSED' as const } : {}),
      ...(isPlain ? { statistics: false, codec: 'UNCOMPRESSED' as const } : {}),
    }),
  );
}

/** Writes such a file. */
export async function writeParquet(
  path: string,
  schema: Schema,
  rows: readonly (readonly Value[])[],
  shape: ParquetShape,
): Promise<void> {
  const bytes = parquetBytes(schema, rows, shape);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
}
