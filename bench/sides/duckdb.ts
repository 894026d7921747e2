import { createReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Question, SetColumn } from '../question.js';
import { columnsOf } from '../record-set.js';
import { isIndexed, type Side, type SideName, type SideOptions } from '../side.js';
import { folderBytes } from './folder-size.js';
import { importPeer } from './peer-package.js';
import { quoteText, selectCounts, selectRecords, sqlQuestion, type Dialect } from './sql.js';

/** The part of a connection that is used. */
export interface DuckDbConnection {
  run(sql: string): Promise<object>;
  runAndReadAll(sql: string): Promise<{ getRows(): (string | null)[][] }>;
  closeSync(): void;
}
interface DuckDbInstance {
  connect(): Promise<DuckDbConnection>;
  closeSync(): void;
}
/** The part of `@duckdb/node-api` that is used. */
export interface DuckDbModule {
  DuckDBInstance: { create(path: string, options: Record<string, string>): Promise<DuckDbInstance> };
}

/** Answers with at least this many records are written to a file: that takes DuckDB less time than passing the texts to JavaScript. */
const copyRowsMin = 50_000;

const types = {
  time: 'TIMESTAMP_MS',
  int: 'BIGINT',
  float: 'DOUBLE',
  word: 'VARCHAR',
  text: 'VARCHAR',
} as const;

/**
 * `lower` is cheap on a column with a dictionary, but not on other texts; there a case-insensitive regular expression takes a third of the
 * time of ILIKE.
 */
const dialect: Dialect = {
  text: quoteText,
  time: (timeMs) => `make_timestamp(${timeMs}000)`,
  like: ({ name, kind }, value) =>
    kind === 'word'
      ? `contains(lower(${name}), ${quoteText(value.toLowerCase())})`
      : `regexp_matches(${name}, ${quoteText(value.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))}, 'i')`,
  prefix: ({ name }, value) => `starts_with(lower(${name}), ${quoteText(value.toLowerCase())})`,
  suffix: ({ name }, value) => `suffix(lower(${name}), ${quoteText(value.toLowerCase())})`,
  regex: ({ name }, value) => `regexp_matches(${name}, ${quoteText(value)})`,
  hour: ({ name }) => `epoch_ms(date_trunc('hour', ${name}))`,
  // Exact: `approx_quantile` takes ten times as long by path.
  number: (fn, column) => (fn === 'avg' ? `avg(${column})` : `quantile_disc(${column}, 0.99)`),
};

/**
 * DuckDB writes Bloom filters only for dictionary-encoded columns. By default it gives up the dictionary of ids long before the end of a
 * row group, so the limit is raised.
 */
const withBloomFilters = ', DICTIONARY_SIZE_LIMIT 1000000, BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.01';

/** Number of files of the archive. */
const archiveFiles = 100;

function placeOf(side: SideName): string {
  if (side === 'duckdb-files') return '*.parquet';
  return side === 'duckdb' ? 'records.duckdb' : 'records.parquet';
}

/** DuckDB over a table of its own, over ZSTD Parquet that it wrote (one file or an archive of files), or over the segments of our store. */
export class DuckDbSide implements Side {
  private readonly columns: readonly SetColumn[];
  private readonly shown: string;
  private readonly isParquet: boolean;
  private readonly dataPath: string;
  /** What queries select from. */
  private readonly table: string;
  private instance: DuckDbInstance | undefined;
  private connection: DuckDbConnection | undefined;

  constructor(private readonly options: SideOptions) {
    this.columns = columnsOf[options.set.name];
    this.isParquet = options.side !== 'duckdb';
    this.dataPath =
      options.side === 'duckdb-our-parquet'
        ? join(options.folder, '../logstrata', options.set.name, 'dt=*/*.parquet')
        : join(options.folder, placeOf(options.side));
    this.table = this.isParquet ? `read_parquet(${quoteText(this.dataPath)})` : 'records';
    this.shown = this.columns
      .map(({ name, kind }) => (kind === 'time' ? `epoch_ms("${name}") AS "${name}"` : name))
      .join(', ');
  }

  async version(): Promise<string> {
    await this.open(':memory:');
    const rows = await this.rows('SELECT version()');
    await this.close();
    return `DuckDB ${rows[0]?.[0] ?? '?'}`;
  }

  async load(): Promise<void> {
    const { set, folder, side } = this.options;
    if (side === 'duckdb-our-parquet') return;
    const kinds = this.columns.map(({ source, kind }) => `${source}: '${types[kind]}'`).join(', ');
    const named = this.columns.map(({ source, name }) => `${source} AS ${name}`).join(', ');
    const records =
      `SELECT seq AS _cursor, ${named} FROM read_json(${quoteText(set.path)}, ` +
      `format = 'newline_delimited', columns = {seq: 'BIGINT', ${kinds}})`;
    await this.open(this.isParquet ? ':memory:' : this.dataPath);
    await this.run(`SET temp_directory = ${quoteText(join(folder, 'temp'))}`);
    if (this.isParquet && side !== 'duckdb-files') {
      const more = side === 'duckdb-parquet-bloom' ? withBloomFilters : '';
      await this.run(
        `COPY (${records}) TO ${quoteText(this.dataPath)} (FORMAT parquet, COMPRESSION zstd${more})`,
      );
    } else if (side === 'duckdb-files') {
      await this.writeFiles(records);
    } else {
      await this.run(`CREATE TABLE records AS ${records}`);
      await this.run('CHECKPOINT');
    }
    await this.close();
  }

  /** Writes files with equal numbers of records. */
  private async writeFiles(records: string): Promise<void> {
    const { set, folder } = this.options;
    await this.run(`CREATE TABLE staged AS ${records}`);
    for (let i = 0; i < archiveFiles; i++) {
      const [from, to] = [i, i + 1].map((part) => Math.floor((set.rows * part) / archiveFiles));
      const path = join(folder, `part-${String(i).padStart(3, '0')}.parquet`);
      await this.run(
        `COPY (SELECT * FROM staged WHERE rowid >= ${from!} AND rowid < ${to!} ORDER BY _cursor) ` +
          `TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd)`,
      );
    }
  }

  async bytesOnDisk(): Promise<number> {
    if (this.options.side === 'duckdb-files') return folderBytes(this.options.folder);
    return this.options.side === 'duckdb-our-parquet' ? 0 : (await stat(this.dataPath)).size;
  }

  async open(path: string = this.isParquet ? ':memory:' : this.dataPath): Promise<void> {
    const { DuckDBInstance } = await importPeer<DuckDbModule>('duckdb', '@duckdb/node-api');
    this.instance = await DuckDBInstance.create(path, { threads: String(this.options.threads) });
    this.connection = await this.instance.connect();
    await this.run("SET timezone = 'UTC'").catch(() => undefined);
  }

  answers(question: Question): boolean {
    if (isIndexed(this.options.side)) return question.needle === 'value';
    // Questions without gram filters are not asked: the Parquet file has no such filter in any case, and this side is there for cold reads.
    return question.isUnindexed !== true || !this.isParquet;
  }

  async ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void> {
    const { counting } = question;
    if (counting !== undefined) {
      const counts = selectCounts({ ...question, counting }, this.columns, dialect, this.table);
      const lines = await this.rows(`SELECT to_json(answer)::VARCHAR FROM (${counts}) AS answer`);
      return take?.(lines.map(([line]) => `${line}\n`).join(''));
    }
    const select = selectRecords(sqlQuestion(question, this.columns, dialect), this.table, this.shown);
    if ((question.rowsExpected ?? 0) >= copyRowsMin) return this.copy(select, take);
    const rows = await this.rows(
      `SELECT to_json(answer)::VARCHAR FROM (${select}) AS answer ORDER BY _cursor`,
    );
    const text = rows.map(([line]) => `${line ?? ''}\n`).join('');
    take?.(text);
  }

  private async copy(select: string, take: ((piece: Uint8Array) => void) | undefined): Promise<void> {
    const path = join(this.options.folder, 'answer.jsonl');
    await this.run(`COPY (${select}) TO ${quoteText(path)} (FORMAT json)`);
    if (take === undefined) return;
    for await (const piece of createReadStream(path)) take(piece as Uint8Array);
    await rm(path);
  }

  close(): Promise<void> {
    this.connection?.closeSync();
    this.instance?.closeSync();
    this.connection = undefined;
    this.instance = undefined;
    return Promise.resolve();
  }

  private async run(sql: string): Promise<void> {
    if (this.connection === undefined) throw new Error('DuckDB is not open');
    await this.connection.run(sql);
  }

  private async rows(sql: string): Promise<(string | null)[][]> {
    if (this.connection === undefined) throw new Error('DuckDB is not open');
    return (await this.connection.runAndReadAll(sql)).getRows();
  }
}
