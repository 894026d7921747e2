import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../../shared/parquet-testing');

/** Why the files with which the Parquet project tests readers can't be read, or null. */
export const missingCorpus = existsSync(root)
  ? null
  : 'the files of the Parquet project are not beside the checkout';

/** Those files of a folder. If they are missing, one name stands for all of them, whose test is reported as skipped. */
export function parquetCorpus(
  folder: 'data' | 'bad_data' | 'data/geospatial',
): { name: string; path: string }[] {
  if (missingCorpus !== null) return [{ name: 'each file', path: root }];
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.parquet') || name.endsWith('.parquet.encrypted'))
    .map((name) => ({ name, path: join(root, folder, name) }));
}
