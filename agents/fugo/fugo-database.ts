import { constants, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type * as Sqlite from 'node-sqlite3-wasm';
import type { Database, NormalQueryResult, Statement } from 'node-sqlite3-wasm';
import {
  closing,
  hasSystemCode,
  LogstrataError,
  BatchBuilder,
  type ColumnBuilder,
  type Counters,
  type FieldType,
  type FloatColumnBuilder,
  type IntColumnBuilder,
  type RecordBatch,
  type Schema,
  typeFacts,
  valueBytesMax,
} from '../../engine/index.js';
import { describeSystemError, SourceError } from '../sources/byte-source.js';

/** A table of the public service, with the records of one agent. */
export interface FugoTable {
  readonly name: string;
  /** Its columns, without the cursor. */
  readonly columns: readonly string[];
  /** The highest cursor; 0 for a table without records. */
  readonly lastCursor: number;
}

/** A row's cursor, and the values of the requested columns, in order. */
export interface FugoRow {
  readonly cursor: number;
  readonly values: readonly FugoValue[];
}

/** Text is given as bytes. Integers that a number can't hold exactly are bigints. */
export type FugoValue = number | bigint | Uint8Array | null;

/** The first bytes of every SQLite file. */
const magic = 'SQLite format 3\0';

/** Suffixes of the files that SQLite keeps next to a database. */
const besides = ['-wal', '-journal'] as const;

/** Limit on the columns of a table: more than an agent can have. */
const columnsMax = 2000;

/**
 * A database of the public service, opened read-only in place: neither it nor any file next to it is written. Pages are read
 * on demand, so the database may be larger than the memory.
 */
export class FugoDatabase {
  private constructor(
    private readonly path: string,
    private readonly database: Database,
    private readonly folder: string,
    private readonly before: string,
  ) {}

  /**
   * Opens a database. Throws `unsupported` where the library is not installed, `locked` where another process has the
   * database open, and `SourceError` for a file that is missing, unreadable or not a database.
   */
  static async open(path: string): Promise<FugoDatabase> {
    await requireDatabase(path);
    refuseOpen(path);
    const sqlite = await sqliteLibrary();
    const before = fingerprint(path);
    // The library locks a database by a folder next to it, which remains if the process is killed. Open it through symbolic
    // links in a temporary folder, so that the lock goes there.
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-import-'));
    try {
      const link = join(folder, 'database');
      symlinkSync(resolve(path), link);
      for (const suffix of besides)
        if (existsSync(path + suffix)) symlinkSync(resolve(path + suffix), link + suffix);
      const database = new sqlite.Database(link, { readOnly: true });
      const opened = new FugoDatabase(path, database, folder, before);
      // Exclusive mode, so that a database in WAL mode needs no memory shared with other processes.
      opened.#ask(() => database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON'));
      return opened;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** The tables that have a cursor, sorted by name. */
  tables(): FugoTable[] {
    const names = this.#all(
      "SELECT CAST(name AS BLOB) AS name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name",
    ).map(({ name }) => textOf(name));
    return names.flatMap((name) => {
      const info = this.#all(`SELECT CAST(name AS BLOB) AS name FROM pragma_table_info(${literal(name)})`);
      const columns = info.map((column) => textOf(column['name']));
      if (!columns.includes('_cursor')) return [];
      if (columns.length > columnsMax)
        throw this.#problem('limit', `table ${name} has ${columns.length} columns, more than ${columnsMax}`);
      const [last] = this.#all(`SELECT max(_cursor) AS last FROM ${identifier(name)}`);
      const lastCursor = Number(last?.['last'] ?? 0);
      return [{ name, columns: columns.filter((column) => column !== '_cursor'), lastCursor }];
    });
  }

  /** Iterates over the rows of a table from a cursor on, in the order of cursors. Throws `damaged` where some can't be read. */
  *rows(table: string, columns: readonly string[], from: number): IterableIterator<FugoRow> {
    const shown = columns.map((column, i) => `${asBytes(column)} AS c${i}`);
    const query = `SELECT ${['_cursor', ...shown].join(', ')} FROM ${identifier(table)} WHERE _cursor >= ? ORDER BY _cursor`;
    const names = columns.map((_, i) => `c${i}`);
    const statement = this.#ask(() => this.database.prepare(query));
    try {
      const rows = statement.iterate(from);
      let last = from - 1;
      for (let next = this.#ask(() => rows.next()); !next.done; next = this.#ask(() => rows.next())) {
        const row = next.value as NormalQueryResult;
        const cursor = row['_cursor'];
        if (typeof cursor !== 'number' || cursor <= last)
          throw this.#problem(
            'damaged',
            `it is damaged: in table ${table} the record after the cursor ${last} has the cursor ${String(cursor)}`,
          );
        last = cursor;
        yield { cursor, values: names.map((name) => row[name] as FugoValue) };
      }
    } finally {
      finalize(statement);
    }
  }

  /** Throws `conflict` where the database was written to since it was opened: the rows may come from several states. */
  requireUnchanged(): void {
    if (fingerprint(this.path) === this.before) return;
    throw this.#problem(
      'conflict',
      'it was changed while it was read: stop the service first. Nothing was stored',
    );
  }

  /** Closes the database and removes the temporary folder. */
  close(): void {
    try {
      this.database.close();
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  #all(query: string): NormalQueryResult[] {
    return this.#ask(() => this.database.all(query)) as NormalQueryResult[];
  }

  /** Runs a query; turns the library's errors into `damaged` with the path. */
  #ask<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'SQLite3Error') throw error;
      throw this.#problem('damaged', `it can't be read: ${error.message}`, error);
    }
  }

  #problem(code: 'damaged' | 'conflict' | 'limit', why: string, cause?: Error): SourceError {
    const place = cause === undefined ? {} : { cause };
    return new SourceError(code, `${this.path}: ${why}`, { path: this.path, ...place });
  }
}

async function sqliteLibrary(): Promise<typeof Sqlite> {
  try {
    const library = (await import('node-sqlite3-wasm')) as unknown as {
      readonly default: typeof Sqlite;
    };
    return library.default;
  } catch (error) {
    if (!hasSystemCode(error, 'ERR_MODULE_NOT_FOUND')) throw error;
    const message =
      'reading SQLite databases needs the package node-sqlite3-wasm, which is not installed: npm install node-sqlite3-wasm';
    throw new LogstrataError('unsupported', message, { cause: error });
  }
}

/** Checks the header of the file, and that the file has the length that the header states. */
async function requireDatabase(path: string): Promise<void> {
  const head = Buffer.alloc(100);
  let bytes = 0;
  let read = 0;
  let isPipe = false;
  try {
    await closing(open(path, constants.O_RDONLY | constants.O_NONBLOCK), async (file) => {
      const stats = await file.stat();
      bytes = stats.size;
      isPipe = !stats.isFile() && !stats.isDirectory();
      if (!isPipe) ({ bytesRead: read } = await file.read(head, 0, head.length, 0));
    });
  } catch (error) {
    throw describeSystemError(error, path);
  }
  if (isPipe)
    throw new SourceError(
      'invalid',
      `${path} is a pipe or a device, and SQLite reads a database in any order: write it to a file first`,
      { path },
    );
  if (read < head.length || head.toString('latin1', 0, magic.length) !== magic)
    throw new SourceError('invalid', `${path} is not an SQLite database`, { path });
  // Page size (1 means 65536) and number of pages; the latter is valid only where the two change counters agree
  // (https://www.sqlite.org/fileformat2.html#file_size).
  const pageBytes = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16);
  const isCounted = head.readUInt32BE(24) === head.readUInt32BE(92);
  const wanted = isCounted ? pageBytes * head.readUInt32BE(28) : 0;
  if (bytes < wanted)
    throw new SourceError('damaged', `${path} is truncated: it has ${bytes} of ${wanted} bytes`, { path });
  if (existsSync(`${path}-journal`) && statSync(`${path}-journal`).size > 0)
    throw new SourceError(
      'invalid',
      `${path}-journal exists: the service was not stopped cleanly, or still runs. Start and stop it, or open the database once with sqlite3`,
      { path },
    );
}

/**
 * Throws `locked` where another process has the database open. That is known only on Linux, from the locks that SQLite holds
 * on the database's files while it is open.
 */
function refuseOpen(path: string): void {
  const numbers = [path, `${path}-shm`, `${path}-wal`].flatMap((file) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats === undefined ? [] : [String(stats.ino)];
  });
  let locks: string;
  try {
    locks = readFileSync('/proc/locks', 'utf8');
  } catch {
    return;
  }
  for (const line of locks.split('\n')) {
    const words = line.trim().split(/\s+/);
    const [pid, place] = words.slice(-4);
    const [, , number] = (place ?? '').split(':');
    if (number === undefined || !numbers.includes(number)) continue;
    throw new LogstrataError(
      'locked',
      `process ${pid} has ${path} open: stop it first, or import a copy that sqlite3's ".backup" makes`,
      { path },
    );
  }
}

function fingerprint(path: string): string {
  const files = [path, ...besides.map((suffix) => path + suffix)];
  return files
    .map((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return stats === undefined ? 'none' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
    })
    .join(', ');
}

/** The library repeats here the error of an earlier read. */
function finalize(statement: Statement): void {
  try {
    statement.finalize();
  } catch {
    // That error was thrown already, or the remaining rows are not wanted.
  }
}

/** Selects text as bytes, because the library would cut it off at a zero byte; other values unchanged. */
function asBytes(column: string): string {
  const name = identifier(column);
  return `CASE typeof(${name}) WHEN 'text' THEN CAST(${name} AS BLOB) ELSE ${name} END`;
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}

/** Rows of a table as columns of an agent, with their cursors. */
export interface FugoBatch {
  readonly batch: RecordBatch;
  readonly cursors: Float64Array;
}

/** Sets a value in a column. Returns false, and sets nothing, where the value can't be read as the column's type. */
type SetValue = (value: number | bigint | Uint8Array) => boolean;

/**
 * Builds batches of rows. A field without a column in the table is null; a value that can't be read as the field's type is
 * null and counted.
 */
export class FugoBatches {
  /** The columns that fields are read from, in the order of a row's values. */
  readonly columns: readonly string[];
  readonly #builder: BatchBuilder;
  readonly #setters: readonly SetValue[];
  #cursors: number[] = [];
  #unreadableValues = 0;
  #replacedBytes = 0;
  #inputBytes = 0;

  constructor(schema: Schema, table: FugoTable) {
    this.#builder = new BatchBuilder(schema);
    const found = schema.fields
      .map(({ name, type }, i) => ({ name, type, column: this.#builder.column(i) }))
      .filter(({ name }) => table.columns.includes(name));
    this.columns = found.map(({ name }) => name);
    this.#setters = found.map(({ type, column }) => this.#setterOf(type, column));
  }

  /** Counters of all rows so far. */
  get counters(): Pick<Counters, 'unreadableValues' | 'replacedBytes' | 'inputBytes'> {
    const unreadableValues = this.#unreadableValues;
    return { unreadableValues, replacedBytes: this.#replacedBytes, inputBytes: this.#inputBytes };
  }

  /** Whether the batch has as many rows as it may have. */
  get isFull(): boolean {
    return this.#builder.full;
  }

  /** Adds a row. Returns false, and adds nothing, where a text is longer than a value may be. */
  add({ cursor, values }: FugoRow): boolean {
    if (values.some((value) => value instanceof Uint8Array && value.length > valueBytesMax)) return false;
    values.forEach((value, i) => {
      if (value === null) return;
      this.#inputBytes += value instanceof Uint8Array ? value.length : 8;
      if (!this.#setters[i]!(value)) this.#unreadableValues++;
    });
    this.#builder.endRow();
    this.#cursors.push(cursor);
    return true;
  }

  /** Returns the rows since the last batch. */
  take(): FugoBatch {
    const cursors = Float64Array.from(this.#cursors);
    this.#cursors = [];
    return { batch: this.#builder.finish(), cursors };
  }

  #setterOf(type: FieldType, column: ColumnBuilder): SetValue {
    if (column.kind !== 'string') return (value) => setNumber(column, typeFacts[type].isBits === true, value);
    return (value) => {
      if (value instanceof Uint8Array) this.#replacedBytes += column.setBytes(value, 0, value.length);
      else column.setString(String(value));
      return true;
    };
  }
}

/**
 * Sets a number; returns false for what the column can't have, such as a text or infinity. SQLite stores some integers as floats, and has no
 * booleans: programs store 1 and 0.
 */
function setNumber(
  column: IntColumnBuilder | FloatColumnBuilder,
  isBits: boolean,
  value: bigint | number | Uint8Array,
): boolean {
  if (value instanceof Uint8Array) return false;
  if (column.kind === 'float') {
    if (!Number.isFinite(Number(value))) return false;
    column.setNumber(Number(value));
  } else if (typeof value === 'bigint' && !isBits) column.setBigInt(value);
  else if (typeof value === 'number' && (isBits ? value === 0 || value === 1 : Number.isSafeInteger(value)))
    column.setNumber(value);
  else return false;
  return true;
}
