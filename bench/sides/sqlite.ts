import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteLongIntegers } from '../answer-digest.js';
import { idColumns, type Question, type SetColumn } from '../question.js';
import { answerColumns, columnsOf, readLines } from '../record-set.js';
import type { Side, SideOptions } from '../side.js';
import { importPeer } from './peer-package.js';
import {
  asksPattern,
  escapeLike,
  quoteText,
  selectCounts,
  selectRecords,
  sqlQuestion,
  type Dialect,
} from './sql.js';

type SqliteValue = string | number | bigint | null;

/** The common part of node:sqlite and better-sqlite3. */
interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    run(...values: SqliteValue[]): object;
    iterate(...values: SqliteValue[]): IterableIterator<object>;
  };
  close(): void;
}
type OpenSqlite = (path: string) => SqliteDatabase;

const types = { time: 'INTEGER', int: 'INTEGER', float: 'REAL', word: 'TEXT', text: 'TEXT' } as const;
const piecesRows = 1000;

/** SQLite's LIKE ignores the case of ASCII letters only, which is enough for the questions. */
const dialect: Dialect = {
  text: quoteText,
  time: (timeMs) => String(timeMs),
  like: ({ name }, value) => `${name} LIKE ${quoteText(`%${escapeLike(value)}%`)} ESCAPE '\\'`,
  prefix: ({ name }, value) => `${name} LIKE ${quoteText(`${escapeLike(value)}%`)} ESCAPE '\\'`,
  suffix: ({ name }, value) => `${name} LIKE ${quoteText(`%${escapeLike(value)}`)} ESCAPE '\\'`,
  hour: ({ name }) => `${name} / 3600000 * 3600000`,
  // It has no percentiles: the question is not asked.
  number: (_, column) => `avg(${column})`,
};

/** Loads node:sqlite where this Node has it, else better-sqlite3. */
async function loadSqlite(): Promise<{ name: string; open: OpenSqlite }> {
  const builtIn = process.getBuiltinModule?.('node:sqlite') as
    { DatabaseSync: new (path: string) => SqliteDatabase } | undefined;
  if (builtIn !== undefined) {
    return { name: 'node:sqlite', open: (path) => new builtIn.DatabaseSync(path) };
  }
  const { default: Database } = await importPeer<{ default: new (path: string) => SqliteDatabase }>(
    'sqlite',
    'better-sqlite3',
  );
  return { name: 'better-sqlite3', open: (path) => new Database(path) };
}

function valueOf(record: Record<string, unknown>, { source, kind }: SetColumn): SqliteValue {
  const value = record[source] as string | number | object | null;
  switch (kind) {
    case 'time':
      return Date.parse(value as string);
    case 'int':
      return typeof value === 'string' ? BigInt(value) : (value as number | null);
    case 'float':
      return value as number | null;
    case 'word':
    case 'text':
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string | null);
  }
}

/**
 * SQLite as a row store, with the schema of the public service: `_cursor INTEGER PRIMARY KEY` and one column per field. The side with an
 * index has a B-tree over the ids.
 */
export class SqliteSide implements Side {
  private readonly columns: readonly SetColumn[];
  private readonly dataPath: string;
  private readonly isIndexed: boolean;
  private database: SqliteDatabase | undefined;

  constructor(private readonly options: SideOptions) {
    this.columns = columnsOf[options.set.name];
    this.dataPath = join(options.folder, 'records.sqlite');
    this.isIndexed = options.side === 'sqlite-indexed';
  }

  async version(): Promise<string> {
    const { name, open } = await loadSqlite();
    const database = open(':memory:');
    const [row] = database.prepare('SELECT sqlite_version() AS version').iterate();
    database.close();
    return `SQLite ${(row as { version: string }).version} (${name})`;
  }

  async load(): Promise<void> {
    const database = (await loadSqlite()).open(this.dataPath);
    const stored = this.columns.map(({ name, kind }) => `${name} ${types[kind]}`).join(', ');
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    database.exec(`CREATE TABLE records (_cursor INTEGER PRIMARY KEY, ${stored})`);
    const insert = database.prepare(
      `INSERT INTO records VALUES (?, ${this.columns.map(() => '?').join(', ')})`,
    );
    database.exec('BEGIN');
    for await (const line of readLines(this.options.set.path)) {
      const record = JSON.parse(quoteLongIntegers(line)) as Record<string, unknown>;
      insert.run(record['seq'] as number, ...this.columns.map((column) => valueOf(record, column)));
    }
    database.exec('COMMIT');
    if (this.isIndexed) database.exec(`CREATE INDEX by_id ON records (${idColumns[this.options.set.name]})`);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
  }

  async bytesOnDisk(): Promise<number> {
    return (await stat(this.dataPath)).size;
  }

  async open(): Promise<void> {
    this.database = (await loadSqlite()).open(this.dataPath);
    // Maps the whole file, so that it is read through the page cache of the system, as by the other sides.
    this.database.exec('PRAGMA mmap_size = 17179869184');
  }

  answers(question: Question): boolean {
    const isAble = question.counting?.number?.fn !== 'p99' && !asksPattern(question);
    return isAble && (!this.isIndexed || question.needle === 'value');
  }

  ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void> {
    if (this.database === undefined) throw new Error('SQLite is not open');
    const { counting } = question;
    const names = this.columns.map(({ name }) => name);
    const shown =
      counting === undefined ? ['_cursor', ...names] : answerColumns(question).map(({ name }) => name);
    const pairs = shown.map((name) => `'${name}', ${name}`).join(', ');
    const records =
      counting === undefined
        ? selectRecords(sqlQuestion(question, this.columns, dialect), 'records', names.join(', '))
        : selectCounts({ ...question, counting }, this.columns, dialect, 'records');
    // One string per record: JSON made in C is faster here than objects made for JavaScript.
    const statement = this.database.prepare(`SELECT json_object(${pairs}) AS line FROM (${records})`);
    let piece = '';
    let waiting = 0;
    for (const row of statement.iterate()) {
      piece += `${(row as { line: string }).line}\n`;
      if (++waiting < piecesRows) continue;
      take?.(piece);
      piece = '';
      waiting = 0;
    }
    if (piece !== '') take?.(piece);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.database?.close();
    this.database = undefined;
    return Promise.resolve();
  }
}
