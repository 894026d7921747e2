import { decodeArrow } from './decode-arrow.js';
import { decodeParquetCompletely } from './complete-columns.js';
import type { DecodedSpans, ForeignRead } from './foreign-file.js';
import { decodeParquet } from './decode-parquet.js';

/**
 * Reads and decodes a column of a row group of another program's file: the wanted span, and others that come with it. Throws
 * `DamageError` with the path, offset, row group and column, `limit` where too much memory is needed, `unsupported`,
 * `not_found` and `io`.
 */
export async function decodeForeign(read: ForeignRead): Promise<DecodedSpans> {
  if (read.format === 'arrow') return await decodeArrow(read);
  return await (read.column.way === 'fast' ? decodeParquet(read) : decodeParquetCompletely(read));
}
