import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** A cell of an answer: times, decimals and nested values are `object`s of DuckDB's own classes. */
export type DuckDbValue = null | boolean | number | bigint | string | object;

interface DuckDbConnection {
  runAndReadAll(sql: string): Promise<{ getRowObjects(): Record<string, DuckDbValue>[] }>;
  closeSync(): void;
}
interface DuckDbModule {
  DuckDBInstance: {
    create(path: string): Promise<{ connect(): Promise<DuckDbConnection>; closeSync(): void }>;
  };
}

const require = createRequire(join(import.meta.dirname, 'package.json'));

export type DuckDbRow = Record<string, DuckDbValue>;

/** Runs one SQL statement in a fresh in-memory DuckDB and returns its rows. 64-bit integers are bigints. */
export async function queryDuckDb(sql: string): Promise<DuckDbRow[]> {
  return (await queryAllDuckDb([sql]))[0]!;
}

/** Runs several statements in one DuckDB, which takes longer to start than to answer. */
export async function queryAllDuckDb(statements: readonly string[]): Promise<DuckDbRow[][]> {
  const entry = pathToFileURL(require.resolve('@duckdb/node-api')).href;
  const module = (await import(entry)) as DuckDbModule;
  const instance = await module.DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const answers: DuckDbRow[][] = [];
    for (const sql of statements) answers.push((await connection.runAndReadAll(sql)).getRowObjects());
    return answers;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
