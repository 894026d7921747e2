import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { caseCount, fc } from '../cases.js';
import { ChunkBytes } from '../../engine/foreign/chunk-bytes.js';
import { eachPage, isData } from '../../engine/foreign/chunk-pages.js';
import type { ForeignFile } from '../../engine/foreign/foreign-file.js';
import { decodeForeign, readForeignFile } from '../../engine/foreign/read-foreign.js';
import type { Query } from '../../engine/scan/query.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { itUnless } from '../needs.js';
import { makeSchema } from '../../engine/core/schema.js';
import type { OurValue } from './duckdb-values.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { columnValues, readingOf, valuesOf } from './reading.js';

const rows = 12_000;
const rowGroupRows = 5000;
const day = Date.UTC(2025, 0, 1);
const optional = { repetition_type: 'OPTIONAL' } as const;
const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8', ...optional } as const;
const schema: SchemaElement[] = [
  { name: 'root', num_children: 8 },
  { name: 'time', type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', repetition_type: 'REQUIRED' },
  { name: 'text', ...text },
  { name: 'host', ...text },
  { name: 'flag', type: 'BOOLEAN', ...optional },
  { name: 'ratio', type: 'DOUBLE', ...optional },
  { name: 'short', type: 'INT32', ...optional },
  { name: 'id', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' }, ...optional },
  { name: 'list', converted_type: 'LIST', num_children: 1, ...optional },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  { name: 'element', num_children: 2, ...optional },
  { name: 'text', ...text },
  { name: 'n', type: 'INT32', ...optional },
];

/** A file with pages of a few kilobytes, whose rows are in the order of `timeOf`. */
function bytesOf(offsetIndex: boolean, timeOf: (row: number) => number): Uint8Array {
  const numbers = Array.from({ length: rows }, (_, i) => i);
  const columns = [
    { name: 'time', data: numbers.map((i) => new Date(day + timeOf(i) * 1000)) },
    { name: 'text', data: numbers.map((i) => (i % 7 === 0 ? null : `text ${i * 7919}`)) },
    { name: 'host', data: numbers.map((i) => `host-${i % 40}`) },
    { name: 'flag', data: numbers.map((i) => (i % 5 === 0 ? null : i % 3 === 0)) },
    { name: 'ratio', data: numbers.map((i) => (i % 11 === 0 ? NaN : i / 7)) },
    { name: 'short', data: numbers.map((i) => (i % 13 === 0 ? null : i - 5000)) },
    { name: 'id', data: numbers.map((i) => `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`) },
    {
      name: 'list',
      data: numbers.map((i) =>
        i % 17 === 0
          ? null
          : Array.from({ length: i % 5 }, (_, k) => ({ text: k === 3 ? null : `${i} in ${k}`, n: k })),
      ),
    },
  ];
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: columns.map((column) => ({ ...column, offsetIndex })),
      schema,
      rowGroupSize: rowGroupRows,
      pageSize: 4096,
    }),
  );
}

let folder: string;
let paths: string[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-wanted-'));
  paths = [join(folder, 'plain.parquet'), join(folder, 'told.parquet')];
  for (const [i, path] of paths.entries())
    await writeFile(
      path,
      bytesOf(i === 1, (row) => row),
    );
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function rowsOf(
  file: ForeignFile,
  path: string,
  column: number,
  rowGroup: number,
  wanted: Uint32Array,
  takesOffsetIndex = false,
): Promise<OurValue[]> {
  const read = { ...readingOf(file, path, column, rowGroup, 1000), rows: wanted, takesOffsetIndex };
  const { spans } = await decodeForeign(read);
  expect(spans).toHaveLength(1);
  return columnValues(spans[0]!.column);
}

const someRows = (count: number): fc.Arbitrary<Uint32Array> =>
  fc
    .uniqueArray(fc.nat(count - 1), { minLength: 1, maxLength: 30 })
    .map((numbers) => Uint32Array.from(numbers).sort());

describe('rows that are wanted alone', () => {
  it('have the values that the whole column has', async () => {
    const told = fc.record({
      which: fc.nat(1),
      column: fc.nat(7),
      rowGroup: fc.nat(1),
      wanted: someRows(rowGroupRows),
      takesOffsetIndex: fc.boolean(),
    });
    const known = new Map<string, OurValue[]>();
    await fc.assert(
      fc.asyncProperty(told, async ({ which, column, rowGroup, wanted, takesOffsetIndex }) => {
        const path = paths[which]!;
        const file = await readForeignFile(path, 'parquet');
        const name = `${which} ${column}`;
        const all = known.get(name) ?? (await valuesOf(file, path, column, 1000));
        known.set(name, all);
        expect(await rowsOf(file, path, column, rowGroup, wanted, takesOffsetIndex)).toEqual(
          [...wanted].map((row) => all[rowGroup * rowGroupRows + row]),
        );
      }),
      { numRuns: caseCount(200) },
    );
  });

  itUnless(missingCorpus, 'have these values in files of many programs', async () => {
    let compared = 0;
    for (const { path } of parquetCorpus('data')) {
      const file = await readForeignFile(path, 'parquet').catch(() => null);
      for (const column of (file?.columns ?? []).keys()) {
        const all = await valuesOf(file!, path, column).catch(() => null);
        const count = file!.rowGroups[0]?.rows ?? 0;
        if (all === null || count === 0) continue;
        const [sample] = fc.sample(someRows(count), 1);
        expect(await rowsOf(file!, path, column, 0, sample!), path).toEqual(
          [...sample!].map((row) => all[row]),
        );
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(300);
  });

  it.each([
    ['whose headers give their rows', 0, [0, 1, 2, 3, 4, 5, 6]],
    ['of lists too, where an index gives their rows', 1, [0, 1, 2, 3, 4, 5, 6, 7]],
  ])('are read without the other pages, %s', async (_, which, columns) => {
    const path = paths[which]!;
    const file = await readForeignFile(path, 'parquet');
    const content = await readFile(path);
    let broken = 0;
    for (const column of columns) {
      const { leaves, ...chunk } = file.rowGroups[0]!.chunks[column]!;
      for (const leaf of leaves ?? [chunk]) {
        const bytes = new ChunkBytes({ path }, leaf);
        const pages = [...eachPage(bytes)].filter(isData);
        bytes.close();
        for (const { bodyAt, header } of pages.slice(0, -1)) {
          content.fill(0xff, bodyAt, bodyAt + header.bytes);
          broken++;
        }
      }
    }
    expect(broken).toBeGreaterThan(columns.length);
    const damaged = join(folder, `damaged-${which}.parquet`);
    await writeFile(damaged, content);
    const last = Uint32Array.of(rowGroupRows - 1);
    for (const column of columns) {
      const expected = await rowsOf(file, path, column, 0, last);
      expect(await rowsOf(file, damaged, column, 0, last, which === 1)).toEqual(expected);
    }
  });
});

describe('the newest page of an attached file with nested columns', () => {
  const fields = makeSchema([
    { name: 'time', type: 'time' },
    { name: 'text', type: 'string' },
    { name: 'id', type: 'string' },
    { name: 'list', type: 'string' },
  ]);
  const newest = (limit: number): Query => ({ limit, after: undefined, before: undefined, predicates: [] });

  it.each([
    ['in the order of time', (row: number) => row],
    ['in no order of time', (row: number) => (row * 7919) % rows],
  ])('has the rows of the whole answer, %s, and leaves other rows undecoded', async (name, timeOf) => {
    const path = join(folder, `${name.replaceAll(' ', '-')}.parquet`);
    await writeFile(path, bytesOf(false, timeOf));
    const archive = await openOn(new MemoryDirectory(), () => day + 86_400_000 * 2);
    const store = await archive.agent('lake', fields);
    const { problems } = await store.attach({
      adds: [{ path, format: 'parquet', constants: {} }],
      moves: [],
      removes: [],
    });
    expect(problems).toEqual([]);
    const page = await answer(store, newest(100));
    const before = await answer(store, { ...newest(50), before: positionOf(page) });
    const all = (await answer(store, newest(rows))).trimEnd().split('\n');
    expect(all).toHaveLength(rows);
    expect(page.trimEnd().split('\n')).toEqual(all.slice(-100));
    expect(before.trimEnd().split('\n')).toEqual(all.slice(-150, -100));
    await archive.close();
  });

  it('is read although other rows are damaged', async () => {
    const path = join(folder, 'partly.parquet');
    await writeFile(
      path,
      bytesOf(false, (row) => row),
    );
    const file = await readForeignFile(path, 'parquet');
    const archive = await openOn(new MemoryDirectory(), () => day + 86_400_000 * 2);
    const store = await archive.agent('lake', fields);
    await store.attach({ adds: [{ path, format: 'parquet', constants: {} }], moves: [], removes: [] });
    const whole = (await answer(store, newest(rows))).trimEnd().split('\n');
    await archive.close();

    const chunk = file.rowGroups[2]!.chunks[6]!;
    const bytes = new ChunkBytes({ path }, chunk);
    const [first] = [...eachPage(bytes)].filter(isData);
    bytes.close();
    const again = await openOn(new MemoryDirectory(), () => day + 86_400_000 * 2);
    const other = await again.agent('lake', fields);
    const handle = await open(path, 'r+');
    await handle.write(Buffer.alloc(first!.header.bytes, 0xff), 0, first!.header.bytes, first!.bodyAt);
    await handle.close();
    await other.attach({ adds: [{ path, format: 'parquet', constants: {} }], moves: [], removes: [] });
    expect((await answer(other, newest(3))).trimEnd().split('\n')).toEqual(whole.slice(-3));
    await expect(answer(other, newest(rows))).rejects.toMatchObject({ code: 'damaged' });
    await again.close();
  });
});

/** The position of the first line of an answer. */
function positionOf(lines: string): Query['before'] {
  const { _cursor } = JSON.parse(lines.slice(0, lines.indexOf('\n'))) as { _cursor: string };
  return { partition: parseInt(_cursor.slice(0, 6), 16), ordinal: parseInt(_cursor.slice(6), 16) };
}
