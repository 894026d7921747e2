import { open, rm } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import {
  lineFormats,
  type AgentStore,
  type Codec,
  type LineFormat,
  type Query,
  type Schema,
} from '../../engine/index.js';
import { parseQueryRequest } from '../http/query-request.js';
import {
  codecOption,
  cursorOption,
  fieldsOption,
  filterHelp,
  limitOption,
  rawQueryOf,
  type QueryBounds,
  readSettings,
  type GlobalFlags,
  type Settings,
  cacheOption,
  workersOption,
} from './options.js';
import { exitDone, UsageError } from './failure.js';
import { formatCounted, withProgress, tell, writeRecords } from './terminal.js';
import { storesOf, withWorkers } from './opened-archive.js';
import { publishFiles, requireFree } from './record-output.js';
import { stoppable } from './stoppable.js';

interface ExportFlags extends GlobalFlags, QueryBounds {
  readonly format: LineFormat | 'parquet';
  readonly output?: string;
  readonly codec?: Codec;
  readonly force?: boolean;
  readonly workers?: number;
}

const examples = `${filterHelp}

Examples:
  $ logstrata export nginx --format jsonl | gzip > nginx.jsonl.gz
  $ logstrata export nginx --format parquet --output nginx.parquet
  $ logstrata export nginx --format csv --fields time,path --output web.csv
  $ logstrata export nginx -n 1000 --format parquet --output newest.parquet
  $ duckdb -c "SELECT status, count(*) FROM 'nginx.parquet' GROUP BY 1"

Writes all matching records, oldest first, with their _cursor. More than 4 million records, or very scattered ones,
take several Parquet files: nginx.parquet, nginx-2.parquet, …`;

/** The query of an export: by default all matching records in ascending order. */
function readQuery(words: readonly string[], flags: ExportFlags, schema: Schema, settings: Settings): Query {
  const format = flags.format === 'parquet' ? undefined : flags.format;
  return parseQueryRequest(rawQueryOf(words, flags, format), {
    schema,
    now: Date.now(),
    timezone: settings.config.server.timezone,
    limitMax: Number.MAX_SAFE_INTEGER,
    limitDefault: Number.MAX_SAFE_INTEGER,
  });
}

async function exportLines(store: AgentStore, query: Query, signal: AbortSignal): Promise<void> {
  const { lines } = await store.scan(query, { signal });
  for await (const piece of lines) await writeRecords(piece);
}

/** Writes to a temporary file first, so that the final name never refers to an incomplete file. Returns the number of records. */
async function exportLinesTo(
  path: string,
  store: AgentStore,
  query: Query,
  force: boolean | undefined,
  signal: AbortSignal,
): Promise<number> {
  const building = `${path}.${process.pid}.part`;
  return withProgress(`exporting ${store.name}`, async (progress) => {
    const { lines, stats } = await store.scan(query, { signal });
    try {
      const file = await open(building, 'wx');
      try {
        for await (const piece of lines) {
          await file.writeFile(piece);
          progress.update(null, formatCounted(stats.rowsReturned, 'record'));
        }
        await file.sync();
      } finally {
        await file.close();
      }
      await publishFiles([[building, path]], force);
    } finally {
      await rm(building, { force: true });
    }
    return stats.rowsReturned;
  });
}

async function exportAgent(
  agent: string,
  words: readonly string[],
  flags: ExportFlags,
  signal: AbortSignal,
): Promise<number> {
  const { format, output = '-' } = flags;
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
    const store = (await storesOf(archive, agent))[0]!;
    const query = readQuery(words, flags, store.schema, settings);
    if (output === '-') {
      await exportLines(store, query, signal);
    } else if (format !== 'parquet') {
      const records = await exportLinesTo(output, store, query, flags.force, signal);
      tell(`${formatCounted(records, 'record')} written to ${output}`);
    } else {
      const { exportParquetTo } = await import('./parquet-output.js');
      const { codec = 'zstd', force } = flags;
      (await exportParquetTo(output, store, query, { codec, force, signal })).forEach(tell);
    }
    return exitDone;
  });
}

/** Adds `logstrata export`: writes all matching records as lines or Parquet. */
export function addExportCommand(program: Command): void {
  program
    .command('export')
    .summary('write matching records to a file')
    .description('Writes all matching records, oldest first, as JSON Lines, JSON, CSV or a Parquet file.')
    .argument('<agent>', 'name of the agent')
    .argument('[filters...]', 'field__operator=value')
    .addOption(
      new Option('--format <name>', 'format').choices([...lineFormats, 'parquet']).makeOptionMandatory(),
    )
    .option('--output <file>', 'file to write; - is standard output, not for parquet (default: -)')
    .option('--force', 'replace the file if it exists')
    .addOption(limitOption('maximum number of records: the newest, or with --after the first (default: all)'))
    .addOption(cursorOption('after'))
    .addOption(cursorOption('before'))
    .addOption(fieldsOption())
    .addOption(codecOption('zstd'))
    .addOption(workersOption('read and search'))
    .addOption(cacheOption())
    .addHelpText('after', examples)
    .action(
      stoppable((flags: ExportFlags, { signal }, agent: string, words: string[]) =>
        exportAgent(agent, words, flags, signal),
      ),
    );
}
