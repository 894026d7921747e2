import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { importPeer } from '../sides/peer-package.js';
import { quoteText } from '../sides/sql.js';
import type { DuckDbModule } from '../sides/duckdb.js';

const firstDay = Date.UTC(2026, 0, 1);
const dayMs = 86_400_000;

/** The files to generate. */
export interface MadeFiles {
  readonly files: number;
  /** Rows per file. */
  readonly rowsOfFile: number;
  /** Number of files in the folder of a day. */
  readonly filesOfDay: number;
}

/** The id of row `i` in SQL. `hash` gives each of these numbers a different value, but for chance. */
const idOfRow = "'r' || lpad(to_hex(hash(i)), 16, '0')";

/**
 * Has DuckDB write a lake below `folder`: ZSTD Parquet files in folders such as `day=2026-01-01`, with five columns. Times increase from
 * file to file. Returns the id of the oldest row.
 */
export async function makeFiles(folder: string, made: MadeFiles): Promise<string> {
  const { files, rowsOfFile, filesOfDay } = made;
  const { DuckDBInstance } = await importPeer<DuckDbModule>('duckdb', '@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  try {
    const rowMs = dayMs / (rowsOfFile * filesOfDay);
    for (let file = 0; file < files; file++) {
      const day = new Date(firstDay + Math.floor(file / filesOfDay) * dayMs).toISOString().slice(0, 10);
      const dayFolder = join(folder, `day=${day}`);
      mkdirSync(dayFolder, { recursive: true });
      const path = join(dayFolder, `part-${String(file).padStart(6, '0')}.parquet`);
      const rows =
        `SELECT make_timestamp((${firstDay} + floor(i * ${rowMs}))::BIGINT * 1000) AS time, 'host-' || (hash(i) % 50) AS host, ` +
        `CASE WHEN hash(i + 1) % 100 = 0 THEN 500 ELSE 200 END AS status, ${idOfRow} AS request_id, ` +
        `'GET /items/' || (hash(i + 2) % 100000) AS message FROM range(${file * rowsOfFile}, ${(file + 1) * rowsOfFile}) AS t(i)`;
      await connection.run(`COPY (${rows}) TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd)`);
    }
    const [[id] = []] = (await connection.runAndReadAll(`SELECT ${idOfRow} FROM range(1) AS t(i)`)).getRows();
    return id!;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
