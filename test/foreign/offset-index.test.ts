import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { caseCount, fc } from '../cases.js';
import type { DecodedSpans, ForeignRead } from '../../engine/foreign/foreign-file.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { missingCorpus, parquetCorpus } from './foreign-samples.js';
import { columnValues, readingOf, valuesOf } from './reading.js';
import { itUnless } from '../needs.js';

const rows = 20_000;
const spanRows = 2000;
const asTold = (read: ForeignRead): Promise<DecodedSpans> =>
  decodeForeign({ ...read, takesOffsetIndex: true });

const optional = { repetition_type: 'OPTIONAL' } as const;
const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8', ...optional } as const;
const schema: SchemaElement[] = [
  { name: 'root', num_children: 5 },
  { name: 'n', type: 'INT32', repetition_type: 'REQUIRED' },
  { name: 'text', ...text },
  { name: 'host', ...text },
  { name: 'id', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' }, ...optional },
  { name: 'list', converted_type: 'LIST', num_children: 1, ...optional },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  { name: 'element', num_children: 2, ...optional },
  { name: 'text', ...text },
  { name: 'n', type: 'INT32', ...optional },
];

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-pages-'));
  path = join(folder, 'a.parquet');
  const numbers = Array.from({ length: rows }, (_, i) => i);
  const columnData = [
    { name: 'n', data: numbers },
    { name: 'text', data: numbers.map((i) => (i % 7 === 0 ? null : `text ${i * 7919}`)) },
    { name: 'host', data: numbers.map((i) => `host-${i % 40}`) },
    { name: 'id', data: numbers.map((i) => `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`) },
    {
      name: 'list',
      data: numbers.map((i) =>
        Array.from({ length: i % 5 }, (_, k) => ({ text: k === 3 ? null : `${i} in ${k}`, n: k })),
      ),
    },
  ] as const;
  const bytes = parquetWriteBuffer({
    columnData: columnData.map((column) => ({ ...column, offsetIndex: true })),
    schema,
    rowGroupSize: rows,
    pageSize: 4096,
  });
  await writeFile(path, new Uint8Array(bytes));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('the page locations that a file states', () => {
  it('are used, so that only the pages of a span are read, and give the same values', async () => {
    const file = await readForeignFile(path, 'parquet');
    for (const [column, { name }] of file.columns.entries()) {
      const { leaves, ...chunk } = file.rowGroups[0]!.chunks[column]!;
      for (const { offsetIndex } of leaves ?? [chunk]) expect(offsetIndex, name).toBeDefined();
      expect(await valuesOf(file, path, column, spanRows, asTold), name).toEqual(
        await valuesOf(file, path, column, spanRows),
      );
      const read = { ...readingOf(file, path, column, 0, spanRows), wanted: 5 };
      const { bytesRead, checksum } = await asTold(read);
      expect(bytesRead).toBeLessThan(file.rowGroups[0]!.chunks[column]!.bytes / 2);
      expect(checksum).toBeNull();
      expect((await decodeForeign(read)).checksum).not.toBeNull();
    }
  });

  it.each([
    ['text', 1],
    ['identifiers', 3],
    ['lists', 4],
  ])('are ignored if the pages or the chunk contradict them, in a column of %s', async (_, which) => {
    const content = await readFile(path);
    const file = await readForeignFile(path, 'parquet');
    const expected = await valuesOf(file, path, which, spanRows);
    const { leaves, ...chunk } = file.rowGroups[0]!.chunks[which]!;
    const { offset, bytes } = (leaves?.[0] ?? chunk).offsetIndex!;
    const damaged = join(folder, 'damaged.parquet');
    const change = fc.oneof(
      fc.uint8Array({ minLength: bytes, maxLength: bytes }),
      fc.integer({ min: 0, max: 255 }).map((byte) => new Uint8Array(bytes).fill(byte)),
      fc.nat(bytes - 1).map((end) => {
        const cut = new Uint8Array(content.subarray(offset, offset + bytes));
        return cut.fill(0, end);
      }),
    );
    await fc.assert(
      fc.asyncProperty(change, fc.nat(rows / spanRows - 1), async (index, wanted) => {
        const other = Buffer.from(content);
        other.set(index, offset);
        await writeFile(damaged, other);
        const { spans } = await asTold({ ...readingOf(file, damaged, which, 0, spanRows), wanted });
        const { column } = spans.find(({ span }) => span === wanted)!;
        expect(columnValues(column)).toEqual(expected.slice(wanted * spanRows, (wanted + 1) * spanRows));
      }),
      { numRuns: caseCount(which === 1 ? 100 : 10) },
    );
  });

  itUnless(missingCorpus, 'give the same values in files of many programs', async () => {
    let told = 0;
    for (const { path: of } of parquetCorpus('data')) {
      const file = await readForeignFile(of, 'parquet').catch(() => null);
      for (const column of (file?.columns ?? []).keys()) {
        const leaves = file!.rowGroups.flatMap(({ chunks }) => chunks[column]!.leaves ?? [chunks[column]!]);
        if (leaves.every(({ offsetIndex }) => offsetIndex === undefined)) continue;
        told++;
        const rowsOfSpan = Math.max(1, Math.floor(file!.rows / 7));
        const expected = await valuesOf(file!, of, column, rowsOfSpan).catch(String);
        expect(await valuesOf(file!, of, column, rowsOfSpan, asTold).catch(String), of).toEqual(expected);
      }
    }
    expect(told).toBeGreaterThan(10);
  });
});
