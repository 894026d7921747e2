import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sqlite from 'node-sqlite3-wasm';
import { workFolder } from '../cli/process.js';

/** The values that a column of the service's tables can hold. */
export type Cell = string | number | bigint | Uint8Array | null;

/** The columns that the service creates for fields of these types. */
export type Columns = Readonly<Record<string, 'TEXT' | 'INTEGER' | 'REAL'>>;

/** Creates a table as the service does for each agent, with rows `[cursor, …values]`. */
export function writeTable(
  database: sqlite.Database,
  name: string,
  columns: Columns,
  rows: Iterable<readonly [number, ...Cell[]]>,
): void {
  const names = Object.keys(columns);
  const defined = names.map((column) => `\`${column}\` ${columns[column]}`);
  database.exec(
    `CREATE TABLE \`${name}\` (${['`_cursor` INTEGER PRIMARY KEY AUTOINCREMENT', ...defined].join(', ')})`,
  );
  const places = Array.from({ length: names.length + 1 }, () => '?').join(', ');
  const statement = database.prepare(`INSERT INTO \`${name}\` VALUES (${places})`);
  database.exec('BEGIN');
  for (const row of rows) statement.run(row as unknown as Cell[]);
  database.exec('COMMIT');
  statement.finalize();
}

/** A new database at `path`, which is closed after `fill`. */
export function writeDatabase(path: string, fill: (database: sqlite.Database) => void): void {
  const database = new sqlite.Database(path);
  try {
    fill(database);
  } finally {
    database.close();
  }
}

/** `%016x`, as the service prints a cursor. */
export const cursorText = (cursor: number): string => cursor.toString(16).padStart(16, '0');

export const webColumns = { time: 'INTEGER', status: 'INTEGER', took: 'REAL', message: 'TEXT' } as const;

/** A folder with the agent `web` for such a table, whose log is `logs/web.log`. */
export function webFolder(retention = ''): string {
  const folder = workFolder();
  mkdirSync(join(folder, 'logs'));
  writeFileSync(
    join(folder, 'agents/web.yaml'),
    `fields:
  - { name: time, timestamp: { format: unix } }
  - { name: status, type: int }
  - { name: took, type: float }
  - { name: message }
file: { path: '../logs/web\\.log', format: json }
${retention}`,
  );
  return folder;
}
