import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type * as Sqlite from 'node-sqlite3-wasm';
import type { Database, NormalQueryResult, Statement } from 'node-sqlite3-wasm';
import { hasSystemCode, LogstrataError } from '../../engine/index.js';
import { describeSystemError, SourceError } from '../sources/source-error.js';

/** A table of the public service: the records of one agent. */
export interface FugoTable {
  readonly name: string;
  /** Its columns but for the cursor. */
  readonly columns: readonly string[];
  /** The highest cursor; 0 where it has no record. */
  readonly lastCursor: number;
}

/** A row, with its cursor and the values of the columns that were asked for, in that order. */
export interface FugoRow {
  readonly cursor: number;
  readonly values: readonly FugoValue[];
}

/** Text comes as its bytes. Integers that a number can't hold exactly are bigints. */
export type FugoValue = number | bigint | Uint8Array | null;

/** What every file of SQLite begins with. */
const magic = 'SQLite format 3\0';

/** Files that SQLite keeps beside a database. */
const besides = ['-wal', '-journal'] as const;

/** Columns of a table, at most: more than an agent can have. */
const columnsMax = 2000;

/**
 * A database of the public service, read as it lies: nothing is written to it, nor beside it. Its pages are read as they are needed, so it may be
 * larger than the memory.
 */
export class FugoDatabase {
  readonly #path: string;
  readonly #database: Database;
  readonly #folder: string;
  readonly #before: string;

  private constructor(path: string, database: Database, folder: string, before: string) {
    this.#path = path;
    this.#database = database;
    this.#folder = folder;
    this.#before = before;
  }

  /**
   * Throws `unsupported` where the library is not installed, `locked` where another process has it open, and a `SourceError` for a file that is
   * not there, can't be read or is no database.
   */
  static async open(path: string): Promise<FugoDatabase> {
    await requireDatabase(path);
    refuseOpen(path);
    const sqlite = await sqliteLibrary();
    const before = fingerprint(path);
    // The library keeps others out by a folder beside the database, which stays behind where a process is killed: here it is in a folder that is gone then.
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-import-'));
    try {
      const link = join(folder, 'database');
      symlinkSync(resolve(path), link);
      for (const suffix of besides)
        if (existsSync(path + suffix)) symlinkSync(resolve(path + suffix), link + suffix);
      const database = new sqlite.Database(link, { readOnly: true });
      const opened = new FugoDatabase(path, database, folder, before);
      // Without memory that is shared with other processes, which a database with a log of its own would need else.
      opened.#ask(() => database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON'));
      return opened;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Tables with a cursor, by name. */
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

  /** The rows of a table from a cursor on, by cursor. Throws `damaged` where they can't all be read. */
  *rows(table: string, columns: readonly string[], from: number): IterableIterator<FugoRow> {
    const shown = columns.map((column, i) => `${asBytes(column)} AS c${i}`);
    const query = `SELECT ${['_cursor', ...shown].join(', ')} FROM ${identifier(table)} WHERE _cursor >= ? ORDER BY _cursor`;
    const names = columns.map((_, i) => `c${i}`);
    const statement = this.#ask(() => this.#database.prepare(query));
    try {
      const rows = statement.iterate(from);
      let last = from - 1;
      for (let next = this.#ask(() => rows.next()); !next.done; next = this.#ask(() => rows.next())) {
        const row = next.value as NormalQueryResult;
        const cursor = row['_cursor'];
        if (typeof cursor !== 'number' || cursor <= last)
          throw this.#problem(
            'damaged',
            `it is damaged: in table ${table} a record stands behind ${last} whose cursor is ${String(cursor)}`,
          );
        last = cursor;
        yield { cursor, values: names.map((name) => row[name] as FugoValue) };
      }
    } finally {
      finalize(statement);
    }
  }

  /** Throws `conflict` where somebody has written to it since it was opened: what was read may be parts of several states. */
  requireUnchanged(): void {
    if (fingerprint(this.#path) === this.#before) return;
    throw this.#problem(
      'conflict',
      'it was written to while it was read: stop the service first. Nothing was stored',
    );
  }

  close(): void {
    try {
      this.#database.close();
    } finally {
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  #all(query: string): NormalQueryResult[] {
    return this.#ask(() => this.#database.all(query)) as NormalQueryResult[];
  }

  /** What the library says is wrong with the file, said of its path. */
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
    return new SourceError(code, `${this.#path}: ${why}`, { path: this.#path, ...place });
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
      'databases of SQLite are read through the package node-sqlite3-wasm, which is not installed: npm install node-sqlite3-wasm';
    throw new LogstrataError('unsupported', message, { cause: error });
  }
}

/** Looks at the beginning of the file, and that all of it is there. */
async function requireDatabase(path: string): Promise<void> {
  const head = Buffer.alloc(100);
  let bytes = 0;
  let read = 0;
  try {
    const file = await open(path);
    try {
      bytes = (await file.stat()).size;
      ({ bytesRead: read } = await file.read(head, 0, head.length, 0));
    } finally {
      await file.close();
    }
  } catch (error) {
    throw describeSystemError(error, path);
  }
  if (read < head.length || head.toString('latin1', 0, magic.length) !== magic)
    throw new SourceError('invalid', `${path} is no database of SQLite`, { path });
  // The length of a page, where 1 stands for 65536, and how many there are, which holds where the two counters agree.
  const pageBytes = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16);
  const isCounted = head.readUInt32BE(24) === head.readUInt32BE(92);
  const wanted = isCounted ? pageBytes * head.readUInt32BE(28) : 0;
  if (bytes < wanted)
    throw new SourceError('damaged', `${path} is cut off: it has ${bytes} bytes of ${wanted}`, { path });
  if (existsSync(`${path}-journal`) && statSync(`${path}-journal`).size > 0)
    throw new SourceError(
      'invalid',
      `${path}-journal is there: the service was not ended in good order, or still runs. Start and stop it, or open the database with sqlite3 once`,
      { path },
    );
}

/** Where it can be told: on Linux, by the locks of other processes. SQLite holds one beside the database as long as it is open. */
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

/** The library throws here once more what a read before has thrown. */
function finalize(statement: Statement): void {
  try {
    statement.finalize();
  } catch {
    // It was told already, or nobody waits for the rest.
  }
}

/** Text as its bytes, which the library would cut off at a zero byte; numbers as they are. */
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
