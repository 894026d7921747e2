import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../../shared/parquet-testing');

/** Whether the files with which the Parquet project tests readers are available. */
export const hasParquetCorpus = existsSync(root);

/** Those files of a folder; none if they are not available. */
export function parquetCorpus(
  folder: 'data' | 'bad_data' | 'data/geospatial',
): { name: string; path: string }[] {
  if (!hasParquetCorpus) return [];
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.parquet') || name.endsWith('.parquet.encrypted'))
    .map((name) => ({ name, path: join(root, folder, name) }));
}
