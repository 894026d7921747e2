import { basename, dirname, extname, join, resolve } from 'node:path';
import {
  type AgentStore,
  type Codec,
  exportParquet,
  openRealDirectory,
  type Query,
} from '../../engine/index.js';
import { formatBytes, formatCounted, withProgress } from './terminal.js';
import { publishFiles } from './record-output.js';

export interface ParquetOutputOptions {
  readonly codec: Codec;
  readonly force: boolean | undefined;
  readonly signal: AbortSignal;
}

/** The name of the file with this index: `nginx.parquet`, `nginx-2.parquet`, … A result may need several files. */
function nameOf(output: string, index: number): string {
  if (index === 0) return output;
  const ending = extname(output);
  return join(dirname(output), `${basename(output, ending)}-${index + 1}${ending}`);
}

/**
 * Writes the records of a query as Parquet to temporary files in the folder of `output`, and renames them once all are complete, so that a
 * failure leaves no incomplete file. Returns lines for the user.
 */
export async function exportParquetTo(
  output: string,
  store: AgentStore,
  query: Query,
  options: ParquetOutputOptions,
): Promise<string[]> {
  const folder = dirname(resolve(output));
  const directory = await openRealDirectory(folder, { create: false });
  const building = (index: number): string => `${basename(nameOf(output, index))}.${process.pid}.part`;
  const result = await withProgress(`exporting ${store.name}`, (progress) =>
    exportParquet(store, query, directory, building, {
      codec: options.codec,
      signal: options.signal,
      onProgress: (records) => progress.update(null, formatCounted(records, 'record')),
    }),
  );
  const names = result.files.map((_, index) => nameOf(output, index));
  await publishFiles(
    result.files.map((name, index) => [join(folder, name), names[index]!]),
    options.force,
  );
  if (result.records === 0) return ['no record matches: no file was written'];
  const size = formatBytes(result.bytes);
  return [`${formatCounted(result.records, 'record')} written to ${names.join(', ')} (${size})`];
}
