import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** What a cell of an answer can be: DuckDB's own value classes for times, decimals and nested values are `object`s. */
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

/** Runs one SQL statement in a fresh in-memory DuckDB and gives its rows. 64-bit integers are bigints. */
export async function queryDuckDb(sql: string): Promise<Record<string, DuckDbValue>[]> {
  const entry = pathToFileURL(require.resolve('@duckdb/node-api')).href;
  const module = (await import(entry)) as DuckDbModule;
  const instance = await module.DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowObjects();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
