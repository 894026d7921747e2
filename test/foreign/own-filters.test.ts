import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { ForeignFile } from '../../engine/foreign/foreign-file.js';
import { askOwnFilter } from '../../engine/foreign/search-parquet.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import type { FieldPredicate, Predicate, Query, ScanStats } from '../../engine/scan/query.js';
import { makeSchema } from '../../engine/core/schema.js';
import { openOn, textOf } from '../engine/store/memory-archive.js';
import { queryAllDuckDb } from '../oracle/duckdb.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

const nowMs = Date.UTC(2026, 5, 1);
const rows = 20_480;
const rowGroupRows = 2048;

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'id', type: 'string' },
  { name: 'n', type: 'int' },
  { name: 'small', type: 'int' },
  { name: 'signless', type: 'int' },
  { name: 'bytes', type: 'string' },
  { name: 'price', type: 'float' },
  { name: 'text', type: 'string', attached: { column: 'n' } },
]);

let folder: string;
let path: string;
let file: ForeignFile;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-filters-'));
  path = join(folder, 'a.parquet');
  // Each value occurs twice in its row group, and bounds rule nothing out. DuckDB writes filters for columns with a dictionary.
  await queryAllDuckDb([
    `COPY (SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS time, md5('' || (i // 2)) AS id,
       ((i // 2 + 7) * 829348951 % 1000000007)::BIGINT AS n, ((i // 2 + 7) * 829348951 % 1000003)::INTEGER - 500000 AS small,
       ((i // 2 + 7) * 829348951 % 4000000007)::UINTEGER AS signless, md5('' || (i // 2))::BLOB AS bytes, (i // 2)::DECIMAL(18, 2) AS price
     FROM range(${rows}) t(i)) TO '${path}'
     (FORMAT parquet, ROW_GROUP_SIZE ${rowGroupRows}, DICTIONARY_SIZE_LIMIT 100000)`,
  ]);
  file = await readForeignFile(path, 'parquet');
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function withAttached<T>(of: string, use: (store: AgentStore) => Promise<T>): Promise<T> {
  const archive = await openOn(new MemoryDirectory(), () => nowMs);
  try {
    const store = await archive.agent('web', schema);
    const { problems } = await store.attach({
      adds: [{ path: of, format: 'parquet', constants: {} }],
      moves: [],
      removes: [],
    });
    expect(problems).toEqual([]);
    return await use(store);
  } finally {
    await archive.close();
  }
}

async function explained(
  store: AgentStore,
  ...predicates: Predicate[]
): Promise<{ lines: Record<string, unknown>[]; stats: ScanStats }> {
  const query: Query = { limit: 1_000_000, after: undefined, before: undefined, predicates };
  const scan = await store.scan(query);
  const text = await textOf(scan.lines);
  const lines = text.split('\n').slice(0, -1);
  return { lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>), stats: scan.stats };
}

const exact = (field: number, value: string): FieldPredicate => ({
  kind: 'string',
  field,
  op: 'exact',
  value,
});
const eq = (field: number, value: bigint): FieldPredicate => ({ kind: 'int', field, op: 'eq', value });

describe('Bloom filters in an attached file', () => {
  it('rule out row groups before the file is indexed, and never one that has the value', async () => {
    expect(file.rowGroups).toHaveLength(rows / rowGroupRows);
    for (const { chunks } of file.rowGroups)
      for (const chunk of chunks.slice(1, 5)) expect(chunk.bloomFilter).not.toBeNull();
    await withAttached(path, async (store) => {
      const { lines: all } = await explained(store);
      for (const row of [77, 5001, rows - 9]) {
        const record = all[row]!;
        for (const predicate of [
          exact(1, String(record.id)),
          eq(2, BigInt(record.n as number)),
          eq(3, BigInt(record.small as number)),
          eq(4, BigInt(record.signless as number)),
        ]) {
          const { lines, stats } = await explained(store, predicate);
          expect(lines.map(({ _cursor }) => _cursor)).toContain(record._cursor);
          expect(lines).toEqual(all.filter((each) => isSame(each, record, predicate.field)));
          // One row group has the value, and a filter errs once in a hundred times.
          expect(stats.rowGroupsPrunedByValue).toBeGreaterThanOrEqual(rows / rowGroupRows - 3);
          expect(stats.valuePiecesRead).toBe(2 * (rows / rowGroupRows));
          expect(stats.bytesRead).toBeLessThanOrEqual((64 + 32) * (rows / rowGroupRows));
        }
      }
      const none = await explained(store, exact(1, 'nowhere'));
      expect(none.lines).toEqual([]);
      expect(none.stats.columnsDecoded).toBeLessThanOrEqual(1);
      const set: FieldPredicate = {
        kind: 'set',
        field: 1,
        members: [exact(1, String(all[3]!.id)), exact(1, String(all[9000]!.id)), exact(1, 'nowhere')].filter(
          (member) => member.kind === 'string',
        ),
      };
      const several = await explained(store, set);
      expect(several.lines).toHaveLength(4);
      expect(several.stats.rowGroupsPrunedByValue).toBeGreaterThanOrEqual(rows / rowGroupRows - 4);
      // Of a group, one filter alone rules nothing out.
      const wide = (...members: FieldPredicate[]): Predicate => ({ kind: 'any', members });
      const number = eq(2, BigInt(all[9000]!.n as number));
      const group = await explained(store, wide(exact(1, String(all[3]!.id)), number));
      expect(group.lines).toEqual([all[2], all[3], all[9000], all[9001]]);
      expect(group.stats.rowGroupsPrunedByValue).toBeGreaterThanOrEqual(rows / rowGroupRows - 4);
      const start = {
        kind: 'string',
        field: 1,
        op: 'prefix',
        value: String(all[200]!.id).slice(0, 20),
      } as const;
      const unasked = await explained(store, wide(number, start));
      expect(unasked.lines).toEqual([all[200], all[201], all[9000], all[9001]]);
      expect(unasked.stats.rowGroupsPrunedByValue).toBe(0);
      // The filters are not used for a field that is read as another type than it is stored.
      const text = await explained(store, exact(7, String(all[3]!.n)));
      expect(text.lines).toHaveLength(2);
      expect(text.stats.valuePiecesRead).toBe(0);
      const parts = await explained(store, {
        kind: 'string',
        field: 1,
        op: 'like',
        value: String(all[3]!.id),
      });
      expect(parts.lines).toHaveLength(2);
      expect(parts.stats.valuePiecesRead).toBe(0);
      await store.indexAttached();
      const indexed = await explained(store, exact(1, String(all[3]!.id)));
      expect(indexed.lines).toHaveLength(2);
      expect(indexed.stats.bytesRead).toBeGreaterThan(0);
    });
  });

  it('do not say whether there is a value where numbers that are no times become null', async () => {
    const seconds = join(folder, 'seconds.parquet');
    await queryAllDuckDb([
      `COPY (SELECT TIMESTAMP '2026-01-01' AS time, (CASE i WHEN 1 THEN 9000000000000000000 ELSE i END)::BIGINT AS seen
       FROM range(3) t(i)) TO '${seconds}' (FORMAT parquet)`,
    ]);
    const fields = [
      { name: 'time', type: 'time' },
      { name: 'seen', type: 'time', attached: { column: 'seen', unit: 's' } },
    ] as const;
    const archive = await openOn(new MemoryDirectory(), () => nowMs);
    const store = await archive.agent('web', makeSchema(fields));
    await store.attach({
      adds: [{ path: seconds, format: 'parquet', constants: {} }],
      moves: [],
      removes: [],
    });
    const { lines } = await explained(store);
    expect(lines.map(({ seen }) => seen)).toEqual([0, null, 2000]);
    const has = async (value: boolean) => (await explained(store, { kind: 'exists', field: 1, value })).lines;
    expect(await has(false)).toEqual([lines[1]]);
    expect(await has(true)).toEqual([lines[0], lines[2]]);
    await archive.close();
  });

  it('are not used if the file has changed since it was attached', async () => {
    const copy = join(folder, 'copy.parquet');
    await copyFile(path, copy);
    await withAttached(copy, async (store) => {
      await explained(store, exact(1, 'nowhere'));
      await writeFile(copy, (await readFile(copy)).subarray(0, -1));
      await expect(explained(store, exact(1, 'elsewhere'))).rejects.toThrow(
        'has changed since it was attached',
      );
    });
  });

  it('are read in limited time, whatever bytes they have', async () => {
    const { offset, bytes } = file.rowGroups[3]!.chunks[1]!.bloomFilter!;
    const content = await readFile(path);
    const damaged = join(folder, 'damaged.parquet');
    const hashes = [{ low: 1, high: 2 }];
    const said = async (header: Uint8Array, claimed: number): Promise<ReturnType<typeof askOwnFilter>> => {
      const other = Buffer.from(content);
      other.set(header.subarray(0, other.length - offset), offset);
      await writeFile(damaged, other);
      return askOwnFilter({ path: damaged }, { offset, bytes: claimed }, hashes);
    };
    expect(await said(new Uint8Array(0), bytes)).toMatchObject({ mayHave: false, piecesRead: 2 });
    // A header that contradicts the footer, is of another kind, or claims more than there is, rules nothing out.
    expect(await said(new Uint8Array(0), bytes + 32)).toMatchObject({ mayHave: true, piecesRead: 1 });
    const header = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 80 }),
      fc.integer({ min: 0, max: 255 }).map((byte) => new Uint8Array(80).fill(byte)),
      fc.tuple(fc.nat(20), fc.integer({ min: 0, max: 255 })).map(([at, byte]) => {
        const own = new Uint8Array(content.subarray(offset, offset + 24));
        own[at] = byte;
        return own;
      }),
    );
    await fc.assert(
      fc.asyncProperty(header, fc.constantFrom(0, bytes, 1, 2 ** 31), async (own, claimed) => {
        const { mayHave, bytesRead } = await said(own, claimed);
        expect(typeof mayHave).toBe('boolean');
        expect(bytesRead).toBeLessThanOrEqual(64 + 32);
      }),
      { numRuns: caseCount(200) },
    );
    expect(askOwnFilter({ path }, { offset: content.length + 10, bytes: 0 }, hashes).mayHave).toBe(true);
  });
});

function isSame(a: Record<string, unknown>, b: Record<string, unknown>, field: number): boolean {
  const { name } = schema.fields[field]!;
  return a[name] === b[name];
}
