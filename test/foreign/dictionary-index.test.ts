import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parquetWriteBuffer, type ColumnSource } from 'hyparquet-writer';
import { caseCount, fc } from '../cases.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { columnSource } from '../../engine/store/attached/column-source.js';
import { work, type ColumnIndex } from '../../engine/store/attached/index-task.js';
import { fileStamp } from '../../engine/store/attached/plan-file.js';
import type { Field } from '../../engine/core/schema.js';
import { readingOf } from './reading.js';

const numRuns = caseCount(20, 500);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-entries-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function indexOf(column: ColumnSource, field: Field, spanRows: number): Promise<ColumnIndex> {
  const path = join(folder, 'a.parquet');
  await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData: [column], rowGroupSize: 1000 })));
  const file = await readForeignFile(path, 'parquet');
  const source = columnSource(field, file, { constants: {}, renamed: undefined });
  if (source.kind !== 'column') throw new Error('the file has the column');
  const attached = { ...(await fileStamp(path)), footerHash: file.footerHash };
  const read = { ...readingOf(file, path, 0, 0, spanRows), column: source.column };
  const { result } = await work({ read, attached, change: source.change, field, hasSketches: false });
  return result;
}

describe('the index of a column with a dictionary', () => {
  it('has the same bounds and nulls for each span as the index of the same values without a dictionary', async () => {
    const values = fc.oneof(
      fc.array(fc.option(fc.constantFrom('b', 'ab', 'żółw', '', 'zz'), { freq: 4 }), {
        minLength: 1,
        maxLength: 200,
      }),
      fc.array(fc.option(fc.constantFrom(-7n, 2n ** 40n, 0n, 500n), { freq: 4 }), {
        minLength: 1,
        maxLength: 200,
      }),
      fc.array(fc.option(fc.constantFrom(0.5, -0, 0, 1e300), { freq: 4 }), { minLength: 1, maxLength: 200 }),
    );
    await fc.assert(
      fc.asyncProperty(values, fc.constantFrom(8, 50, 200), async (data, spanRows) => {
        const some = data.find((value) => value !== null) ?? '';
        const kind = typeof some === 'string' ? 'string' : typeof some === 'bigint' ? 'int' : 'float';
        const type = { string: 'STRING', int: 'INT64', float: 'DOUBLE' }[kind];
        const of = (encoding: string): ColumnSource =>
          ({ name: 'v', type, data, nullable: true, encoding }) as ColumnSource;
        const field: Field = { name: 'v', type: kind };
        const coded = await indexOf(of('RLE_DICTIONARY'), field, spanRows);
        const plain = await indexOf(of('PLAIN'), field, spanRows);
        const zones = ({ spans }: ColumnIndex) =>
          spans.map(({ nullCount, bounds }) => ({ nullCount, bounds }));
        expect(zones(coded)).toEqual(zones(plain));
      }),
      { numRuns },
    );
  });

  it('has no bounds from values of other spans, whatever codes the rows without a value have', async () => {
    const some = Array.from({ length: 32 }, (_, i) => (i % 2 === 0 ? null : 'm'));
    const data = [...Array<string>(16).fill('z'), ...some, ...Array<string>(32).fill('a')];
    const column = { name: 'v', type: 'STRING', data, encoding: 'RLE_DICTIONARY' } as ColumnSource;
    const { spans } = await indexOf(column, { name: 'v', type: 'string' }, 16);
    const bounds = spans.map((span) =>
      [span.bounds!.min, span.bounds!.max].map((text) => Buffer.from(text).toString()),
    );
    expect(bounds.map((two) => two.join(''))).toEqual(['zz', 'mm', 'mm', 'aa', 'aa']);
  });

  it('has no filters for repeated values, and value filters for distinct ones', async () => {
    const field: Field = { name: 'v', type: 'string' };
    const of = (distinct: number): ColumnSource =>
      ({
        name: 'v',
        type: 'STRING',
        data: Array.from({ length: 1000 }, (_, i) => `value ${i % distinct}`),
        encoding: 'RLE_DICTIONARY',
      }) as ColumnSource;
    const [repeating] = (await indexOf(of(40), field, 1000)).spans;
    expect(repeating!.filters).toEqual({ grams: null, values: null });
    const [distinct] = (await indexOf(of(900), field, 1000)).spans;
    expect(distinct!.filters.values).not.toBeNull();
  });
});
