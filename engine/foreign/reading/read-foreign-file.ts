import { readArrowFile } from '../arrow/read-arrow-file.js';
import type { ForeignFile, ForeignFormat, LocalCopy } from '../foreign-file.js';
import { readParquetFile } from '../parquet/read-parquet-file.js';

/**
 * Describes a file that another program wrote. Reads its footer and, of an Arrow file, the headers of its batches. Throws
 * `DamageError` with the path and offset for a file that is malformed or of another format, `unsupported` for one that can't
 * be read, `not_found` and `io`.
 */
export async function readForeignFile(
  path: string,
  format: ForeignFormat,
  copy?: LocalCopy,
): Promise<ForeignFile> {
  const place = { path, copy };
  return format === 'arrow' ? await readArrowFile(place) : await readParquetFile(place);
}
