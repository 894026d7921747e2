import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { batchFromRows, type Value } from '../model/rows.js';
import type { Schema } from '../../engine/core/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { queryDuckDb, type DuckDbValue } from '../oracle/duckdb.js';
import { cursorsOf, fileBytes, mixedRows, mixedSchema, sealBatches } from './segment-sample.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-duckdb-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** A value as DuckDB returns it, for columns whose times are read as milliseconds. */
function asAnswered(value: Value, type: string): DuckDbValue {
  if (value === null) return null;
  return type === 'int' || type === 'time' ? BigInt(value) : value;
}

function selectAll(schema: Schema, path: string): string {
  const columns = schema.fields.map(({ name, type }) =>
    type === 'time' ? `epoch_ms("${name}") AS "${name}"` : `"${name}"`,
  );
  return `SELECT _cursor, ${columns.join(', ')} FROM read_parquet('${path}') ORDER BY _cursor`;
}

describe.each(['lz4', 'zstd'] as const)('DuckDB reads segments that were sealed with %s', (codec) => {
  test.each([
    ['no rows', []],
    ['one row', [1]],
    ['row groups of every kind of length', [1000, 1, 7, 2048, 2049]],
    ['a full row group', [65536]],
    ['many small row groups', Array.from({ length: 64 }, (_, i) => i + 1)],
  ])(
    '%s',
    async (name, lengths) => {
      const directory = new MemoryDirectory();
      const rowGroups = lengths.map((rows, i) => mixedRows(rows, i + 1));
      const batches = rowGroups.map((rows) => batchFromRows(mixedSchema, rows));
      const entry = await sealBatches(directory, 'a.parquet', mixedSchema, batches, codec);
      const path = join(folder, `${codec}-${name.replaceAll(' ', '-')}.parquet`);
      await writeFile(path, await fileBytes(directory, 'a.parquet'));

      const answered = await queryDuckDb(selectAll(mixedSchema, path));
      const cursors = cursorsOf(entry.runs);
      const rows = rowGroups.flat();
      expect(answered.length).toBe(rows.length);
      rows.forEach((row, i) => {
        const expected: Record<string, DuckDbValue> = { _cursor: cursors[i]! };
        mixedSchema.fields.forEach((field, k) => (expected[field.name] = asAnswered(row[k]!, field.type)));
        expect(answered[i]).toEqual(expected);
      });

      const [bounds] = await queryDuckDb(
        `SELECT count(*) AS n, min(_cursor) AS low, max(_cursor) AS high FROM read_parquet('${path}')`,
      );
      expect(bounds).toEqual({
        n: BigInt(rows.length),
        low: cursors[0] ?? null,
        high: cursors.at(-1) ?? null,
      });
    },
    60_000,
  );

  test('and prunes by their statistics without losing rows', async () => {
    const directory = new MemoryDirectory();
    const schema: Schema = {
      fields: [
        { name: 'f', type: 'float' },
        { name: 's', type: 'string' },
        { name: 'i', type: 'int' },
      ],
    };
    const batches = [0, 1, 2].map((group) =>
      batchFromRows(
        schema,
        Array.from({ length: 100 }, (_, i): Value[] => [
          group === 1 && i === 5 ? -0 : group + i / 1000,
          `${group}-ż${i}`,
          group * 100 + i,
        ]),
      ),
    );
    await sealBatches(directory, 'a.parquet', schema, batches, codec);
    const path = join(folder, `${codec}-pruned.parquet`);
    await writeFile(path, await fileBytes(directory, 'a.parquet'));
    const count = async (where: string): Promise<DuckDbValue> =>
      (await queryDuckDb(`SELECT count(*) AS n FROM read_parquet('${path}') WHERE ${where}`))[0]!.n!;
    expect(await count('f = 0')).toBe(2n);
    expect(await count("s = '2-ż99'")).toBe(1n);
    expect(await count("s >= '1'")).toBe(200n);
    expect(await count('i BETWEEN 150 AND 249')).toBe(100n);
  });

  test('with the types of logs', async () => {
    const directory = new MemoryDirectory();
    await sealBatches(directory, 'a.parquet', mixedSchema, [batchFromRows(mixedSchema, mixedRows(3))], codec);
    const path = join(folder, `${codec}-types.parquet`);
    await writeFile(path, await fileBytes(directory, 'a.parquet'));
    const described = await queryDuckDb(`DESCRIBE SELECT * FROM read_parquet('${path}')`);
    const types = Object.fromEntries(described.map((row) => [row.column_name, row.column_type]));
    expect(types).toMatchObject({
      _cursor: 'BIGINT',
      time: 'TIMESTAMP WITH TIME ZONE',
      level: 'VARCHAR',
      duration: 'DOUBLE',
      status: 'BIGINT',
      nothing: 'VARCHAR',
    });
  });
});
