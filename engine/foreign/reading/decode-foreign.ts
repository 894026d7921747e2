import { LogstrataError } from '../../terms/errors.js';
import { decodeParquetCompletely } from '../complete/decode-parquet.js';
import type { DecodedSpans, ForeignRead } from '../foreign-file.js';

/**
 * Reads and decodes a column of a row group of a file that another program wrote: the wanted span, and others that come with it. Throws
 * `DamageError` with the path, offset, row group and column, `limit` for what takes too much memory, `unsupported`, `not_found` and `io`.
 */
export async function decodeForeign(read: ForeignRead): Promise<DecodedSpans> {
  if (read.format === 'parquet') return await decodeParquetCompletely(read);
  throw new LogstrataError(
    'unsupported',
    `${read.path}: files of the format "${read.format}" can't be read`,
    {
      path: read.path,
    },
  );
}
