import { expect, it } from 'vitest';
import { queryDuckDb } from './duckdb.js';

it('DuckDB answers with exact integers and text', async () => {
  const rows = await queryDuckDb(`SELECT 9007199254740993::BIGINT AS id, 'é' AS name, NULL AS nothing`);
  expect(rows).toEqual([{ id: 9007199254740993n, name: 'é', nothing: null }]);
});
