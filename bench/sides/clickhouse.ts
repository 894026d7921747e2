import { join } from 'node:path';
import { idColumns, type Question, type SetColumn } from '../question.js';
import { columnsOf } from '../record-set.js';
import type { Side, SideOptions } from '../side.js';
import { importPeer } from './peer-package.js';
import { escapeLike, selectCounts, selectRecords, sqlQuestion, type Dialect } from './sql.js';

interface ChdbSession {
  query(sql: string, format?: string): string;
  queryStream(sql: string, options: { format: string }): AsyncIterable<{ raw(): Uint8Array }>;
  close(): void;
}
interface ChdbModule {
  Session: new (path: string) => ChdbSession;
}

/** Answers with at least this many records are streamed: as one string of hundreds of megabytes they would take longer. */
const streamRowsMin = 20_000;

function quote(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

function isAscii(value: string): boolean {
  return Buffer.byteLength(value) === value.length;
}

const dialect: Dialect = {
  text: quote,
  time: (timeMs) => `fromUnixTimestamp64Milli(${timeMs}, 'UTC')`,
  like: ({ name }, value) =>
    `positionCaseInsensitive${isAscii(value) ? '' : 'UTF8'}(${name}, ${quote(value)}) > 0`,
  prefix: ({ name }, value) => `startsWith(lowerUTF8(${name}), ${quote(value.toLowerCase())})`,
  suffix: ({ name }, value) => `endsWith(lowerUTF8(${name}), ${quote(value.toLowerCase())})`,
  regex: ({ name }, value) => `match(${name}, ${quote(value)})`,
  hour: ({ name }) => `toInt64(toUnixTimestamp(toStartOfHour(${name}))) * 1000`,
  number: (fn, column) => (fn === 'avg' ? `avg(${column})` : `quantileDD(0.01, 0.99)(${column})`),
};

/**
 * The dialect for the side with indexes, whose text index is over `lower(message)`. Of the conditions that give the right answer,
 * ClickHouse uses the text index only for this one, as `EXPLAIN indexes = 1` shows; ILIKE and positionCaseInsensitive read every granule.
 * All searched texts are ASCII.
 */
const indexedDialect: Dialect = {
  ...dialect,
  like: ({ name }, value) => `lower(${name}) LIKE ${quote(`%${escapeLike(value.toLowerCase())}%`)}`,
};

/** The type of a column. `word` columns use ClickHouse's dictionary. */
function typeOf({ kind, nullable }: SetColumn, isRead: boolean): string {
  switch (kind) {
    case 'time':
      return isRead ? 'String' : "DateTime64(3, 'UTC')";
    case 'int':
      return 'Int64';
    case 'float':
      return 'Float64';
    case 'word': {
      const base = nullable ? 'Nullable(String)' : 'String';
      return isRead ? base : `LowCardinality(${base})`;
    }
    case 'text':
      return nullable ? 'Nullable(String)' : 'String';
  }
}

/**
 * ClickHouse as a library in this process: a MergeTree ordered by `_cursor`, with the default LZ4 or with ZSTD. The side with indexes has
 * those that find needles fastest: a Bloom filter over the ids, and a text index over 4-grams of `message`. `ngrambf_v1` would take twice
 * as long or rule nothing out, because a granule contains all 4-grams of hexadecimal digits. The side over files is a view of the Parquet
 * files that DuckDB wrote.
 */
export class ClickHouseSide implements Side {
  private readonly columns: readonly SetColumn[];
  private readonly shown: string;
  private readonly settings: string;
  private readonly dataPath: string;
  private readonly isIndexed: boolean;
  private session: ChdbSession | undefined;

  constructor(private readonly options: SideOptions) {
    this.columns = columnsOf[options.set.name];
    this.dataPath = join(options.folder, 'clickhouse');
    this.isIndexed = options.side === 'clickhouse-indexed';
    // The records come from a subquery under their own names, so that a filter on `time` refers to the column.
    this.shown = this.columns
      .map(({ name, kind }) => (kind === 'time' ? `toUnixTimestamp64Milli(chosen.${name}) AS ${name}` : name))
      .join(', ');
    this.settings = [
      `SETTINGS max_threads = ${options.threads}`,
      // With this cache, a repeated question would not search at all.
      'use_query_condition_cache = 0',
      'output_format_json_quote_64bit_integers = 0',
      'output_format_json_escape_forward_slashes = 0',
    ].join(', ');
  }

  async version(): Promise<string> {
    await this.open();
    const version = this.query('SELECT version()', 'TabSeparated').trim();
    await this.close();
    return `ClickHouse ${version} (chdb)`;
  }

  async load(): Promise<void> {
    const { set, side, threads } = this.options;
    await this.open();
    if (side === 'clickhouse-files') {
      this.query('CREATE DATABASE bench');
      this.query(`CREATE VIEW bench.records AS SELECT * FROM file(${quote(this.files)}, Parquet)`);
      await this.close();
      return;
    }
    const codec = side === 'clickhouse-zstd' ? ' CODEC(ZSTD(1))' : '';
    const stored = this.columns.map((column) => `${column.name} ${typeOf(column, false)}${codec}`).join(', ');
    this.query('CREATE DATABASE bench');
    this.query(
      `CREATE TABLE bench.records (_cursor UInt64${codec}, ${stored}, ` +
        `INDEX by_time time TYPE minmax GRANULARITY 1${this.indexes()}) ENGINE = MergeTree ORDER BY _cursor`,
    );
    const read = this.columns.map((column) => `${column.source} ${typeOf(column, true)}`).join(', ');
    const values = this.columns
      .map(({ source, kind }) =>
        kind === 'time' ? `parseDateTime64BestEffort(${source}, 3, 'UTC')` : source,
      )
      .join(', ');
    this.query(
      `INSERT INTO bench.records SELECT seq, ${values} FROM file(${quote(set.path)}, 'JSONEachRow', ` +
        `${quote(`seq UInt64, ${read}`)}) SETTINGS max_threads = ${threads}, ` +
        'input_format_json_read_objects_as_strings = 1, input_format_skip_unknown_fields = 1',
    );
    this.query('OPTIMIZE TABLE bench.records FINAL');
    await this.close();
  }

  /** The files that the side `duckdb-files` has written. */
  private get files(): string {
    return join(this.options.folder, '../duckdb-files/*.parquet');
  }

  async bytesOnDisk(): Promise<number> {
    // A view stores nothing besides the files.
    if (this.options.side === 'clickhouse-files') return 0;
    await this.open();
    // Only active parts are counted: the folder also contains parts that were merged, which ClickHouse removes after some minutes.
    const bytes = this.query(
      "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'",
      'TabSeparated',
    );
    await this.close();
    return Number(bytes);
  }

  async open(): Promise<void> {
    const { Session } = await importPeer<ChdbModule>('clickhouse', 'chdb');
    this.session = new Session(this.dataPath);
  }

  answers(question: Question): boolean {
    return !this.isIndexed || (question.needle !== undefined && question.isUnindexed !== true);
  }

  async ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void> {
    const { counting } = question;
    if (counting !== undefined) {
      const counts = selectCounts({ ...question, counting }, this.columns, dialect, 'bench.records');
      const lines = this.query(`${counts} ${this.settings}`, 'JSONEachRow');
      return take?.(lines);
    }
    const parts = sqlQuestion(question, this.columns, this.isIndexed ? indexedDialect : dialect);
    const records =
      parts.direction === 'DESC'
        ? selectRecords(parts, 'bench.records', this.shown)
        : `SELECT _cursor, ${this.shown} FROM (SELECT * FROM bench.records ${parts.where} ORDER BY _cursor ${parts.limit}) AS chosen ORDER BY _cursor`;
    const sql = `${records} ${this.settings}`;
    if (question.limit < streamRowsMin) {
      const text = this.query(sql, 'JSONEachRow');
      take?.(text);
      return;
    }
    if (this.session === undefined) throw new Error('ClickHouse is not open');
    for await (const piece of this.session.queryStream(sql, { format: 'JSONEachRow' })) {
      const bytes = piece.raw();
      take?.(bytes);
    }
  }

  close(): Promise<void> {
    this.session?.close();
    this.session = undefined;
    return Promise.resolve();
  }

  private indexes(): string {
    if (!this.isIndexed) return '';
    const { name } = this.options.set;
    const byId = `, INDEX by_id ${idColumns[name]} TYPE bloom_filter(0.01) GRANULARITY 1`;
    return name === 'app' ? byId : `${byId}, INDEX by_text lower(message) TYPE text(tokenizer = ngrams(4))`;
  }

  private query(sql: string, format = 'JSONEachRow'): string {
    if (this.session === undefined) throw new Error('ClickHouse is not open');
    return this.session.query(sql, format);
  }
}
