import { createWriteStream, existsSync, statSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  exportParquet,
  LogstrataError,
  openRealDirectory,
  type AgentStore,
  type Codec,
  type LineFormat,
  type Query,
  type SeveralQuery,
  type SeveralStore,
} from '../../engine/index.js';
import { agentNames } from '../http/query-request.js';
import { exitDone, UsageError } from './failure.js';
import { storesOf, withWorkers } from './opened-archive.js';
import { readSettings, type GlobalFlags, type QueryBounds, type Settings } from './options.js';
import { queryIn } from './query.js';
import type { StopSignals } from './stoppable.js';
import { formatBytes, formatCounted, tell, withProgress, writeRecords } from './terminal.js';

interface ExportFlags extends GlobalFlags, QueryBounds {
  readonly format: LineFormat | 'parquet';
  readonly output?: string;
  readonly codec?: Codec;
  readonly force?: boolean;
  readonly workers?: number;
}

/**
 * Checks that a file may be written. Throws `exists` where there is a file and `force` is not set, or a folder, which is never replaced;
 * `not_found` where the folder of the file does not exist.
 */
function requireFree(path: string, force: boolean | undefined): void {
  const folder = dirname(resolve(path));
  if (!existsSync(folder)) {
    throw new LogstrataError('not_found', `can't write ${path}: the folder ${folder} is not there`, { path });
  }
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) {
    throw new LogstrataError('exists', `${path} is a folder: name a file in it`, { path });
  }
  if (force === true || found === undefined) return;
  throw new LogstrataError('exists', `${path} already exists; --force replaces it`, { path });
}

/**
 * Moves finished files (`[written, name]`) to their names, so that a name never refers to an incomplete file. Throws like `requireFree`,
 * also for a file that appears meanwhile. The written files are removed even after a failure.
 */
async function publishFiles(
  files: readonly (readonly [string, string])[],
  force: boolean | undefined,
): Promise<void> {
  try {
    for (const [, path] of files) requireFree(path, force);
    for (const [written, path] of files) {
      // Unlike a rename, a link fails where somebody has created the file meanwhile.
      if (force === true) await rename(written, path);
      else await link(written, path);
    }
  } finally {
    for (const [written] of files) await rm(written, { force: true });
  }
}

/** The query of an export: by default all matching records in ascending order. */
function readQuery(words: readonly string[], flags: ExportFlags, store: Store, settings: Settings): Query {
  const { since, until, limit, after, before, fields, format } = flags;
  const options = {
    since,
    until,
    limit,
    after,
    before,
    fields,
    format: format === 'parquet' ? [] : [format],
  };
  return queryIn(store, words, options, {
    now: Date.now(),
    timezone: settings.config.server.timezone,
    limitMax: Number.MAX_SAFE_INTEGER,
    limitDefault: Number.MAX_SAFE_INTEGER,
  });
}

type Store = AgentStore | SeveralStore;

/** What is exported, and where to. */
interface Export<From extends Store = Store> {
  readonly output: string;
  readonly store: From;
  readonly query: Query;
  readonly flags: ExportFlags;
  readonly signal: AbortSignal;
}

/** Writes to a temporary file first, so that the final name never refers to an incomplete file. Returns a line for the user. */
async function exportLinesTo({ output, store, query, flags, signal }: Export): Promise<string> {
  const building = `${output}.${process.pid}.part`;
  const records = await withProgress(`exporting ${store.name}`, async (progress) => {
    const { lines, stats } = await store.scan(query as SeveralQuery, { signal });
    const shown = async function* (): AsyncGenerator<Uint8Array> {
      for await (const piece of lines) {
        yield piece;
        progress.update(null, formatCounted(stats.rowsReturned, 'record'));
      }
    };
    try {
      await pipeline(shown, createWriteStream(building, { flags: 'wx', flush: true }));
      await publishFiles([[building, output]], flags.force);
    } finally {
      await rm(building, { force: true });
    }
    return stats.rowsReturned;
  });
  return `${formatCounted(records, 'record')} written to ${output}`;
}

/** Runs `logstrata export`: writes all matching records as lines or Parquet. */
export async function exportRecords(
  flags: ExportFlags,
  { signal }: StopSignals,
  agent: string,
  words: readonly string[],
): Promise<number> {
  const { format, output = '-' } = flags;
  const names = agent.includes(',') ? agentNames(agent) : [agent];
  if (format === 'parquet' && names.length > 1)
    throw new UsageError(
      'a Parquet file has the records of one agent',
      `Export them one by one, or as lines: ${agent} --format jsonl`,
    );
  if (format === 'parquet' && output === '-') {
    throw new UsageError(
      'a Parquet file cannot be written to standard output',
      `For example: --output ${agent}.parquet`,
    );
  }
  if (format === 'parquet' && flags.fields?.at(-1) === '')
    throw new UsageError('a Parquet file needs at least one field', 'For example: --fields time,message');
  const settings = await readSettings(flags);
  if (output !== '-') requireFree(output, flags.force);
  return withWorkers(settings, 'read', 'export', flags.workers, async (archive) => {
    const [first, ...others] = (await Promise.all(names.map((name) => storesOf(archive, name)))).flat();
    const store = others.length === 0 ? first! : first!.joined(others);
    const query = readQuery(words, flags, store, settings);
    const exported = { output, store, query, flags, signal };
    if (format === 'parquet') tell(await exportParquetTo({ ...exported, store: first! }));
    else if (output !== '-') tell(await exportLinesTo(exported));
    else {
      const { lines } = await store.scan(query as SeveralQuery, { signal });
      for await (const piece of lines) await writeRecords(piece);
    }
    return exitDone;
  });
}

/** The name of the file with this index: `nginx.parquet`, `nginx-2.parquet`, … A result may need several files. */
function nameOf(output: string, index: number): string {
  if (index === 0) return output;
  const ending = extname(output);
  return join(dirname(output), `${basename(output, ending)}-${index + 1}${ending}`);
}

/**
 * Writes the records of a query as Parquet to temporary files in the folder of the output, and renames them once all are complete, so that a
 * failure leaves no incomplete file. Returns a line for the user.
 */
async function exportParquetTo({ output, store, query, flags, signal }: Export<AgentStore>): Promise<string> {
  const { codec = 'zstd', force } = flags;
  const folder = dirname(resolve(output));
  const directory = await openRealDirectory(folder, { create: false });
  const building = (index: number): string => `${basename(nameOf(output, index))}.${process.pid}.part`;
  const { files, records, bytes } = await withProgress(`exporting ${store.name}`, (progress) => {
    const onProgress = (rows: number): void => progress.update(null, formatCounted(rows, 'record'));
    return exportParquet(store, query, directory, building, { codec, signal, onProgress });
  });
  const written = files.map((name, index) => [join(folder, name), nameOf(output, index)] as const);
  await publishFiles(written, force);
  if (records === 0) return 'no record matches: no file was written';
  const names = written.map(([, name]) => name).join(', ');
  return `${formatCounted(records, 'record')} written to ${names} (${formatBytes(bytes)})`;
}
