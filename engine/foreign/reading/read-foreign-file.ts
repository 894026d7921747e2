import { LogstrataError } from '../../terms/errors.js';
import type { ForeignFile, ForeignFormat } from '../foreign-file.js';
import { readParquetFile } from '../parquet/read-parquet-file.js';

/**
 * What a file that another program wrote says of itself. Reads its footer alone. Throws `DamageError` with the path and offset for a file
 * that is malformed or of another format, `unsupported` for one that can't be read, `not_found` and `io`.
 */
export async function readForeignFile(path: string, format: ForeignFormat): Promise<ForeignFile> {
  if (format === 'parquet') return await readParquetFile(path);
  throw new LogstrataError('unsupported', `${path}: files of the format "${format}" can't be read`, { path });
}
