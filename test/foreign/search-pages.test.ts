import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parquetWriteBuffer, type ColumnSource } from 'hyparquet-writer';
import { caseCount, fc, isWhole } from '../cases.js';
import { searchParquet } from '../../engine/foreign/search-parquet.js';
import { decodeForeign } from '../../engine/foreign/read-foreign.js';
import { readForeignFile } from '../../engine/foreign/read-foreign.js';
import { kernelNeedle } from '../../engine/kernels/needle.js';
import type { Query } from '../../engine/scan/query.js';
import { streamedBytesMin } from '../../engine/core/limits.js';
import { makeSchema } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { openOn } from '../engine/store/memory-archive.js';
import { answerOf } from '../model/answer.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { placed, type Row } from './placed-rows.js';
import { columnValues, readingOf } from './reading.js';
import { writeParquet } from './write-parquet.js';
import { anyText } from '../model/any-text.js';

const numRuns = caseCount(60, 1500);
const workers = new WorkerPool(2);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-searched-'));
});
afterAll(async () => {
  await workers.close();
  await rm(folder, { recursive: true, force: true });
});

/** Texts whose lengths are bytes that occur in texts too, and bytes that are not UTF-8. */
const bytesOfText = fc.oneof(
  anyText({ maxLength: 8 }).map((text) => new TextEncoder().encode(text)),
  fc.constantFrom(0x21, 0x61, 0x79).map((length) => new Uint8Array(length).fill(0x73)),
  fc.uint8Array({ maxLength: 12 }),
);
const value = fc.option(bytesOfText, { nil: null, freq: 4 });
const shape = fc.record({
  encoding: fc.constantFrom('PLAIN', 'RLE_DICTIONARY', 'DELTA_LENGTH_BYTE_ARRAY', undefined),
  codec: fc.constantFrom('UNCOMPRESSED' as const, 'SNAPPY' as const),
  pageSize: fc.constantFrom(40, 300, 100_000),
  spanRows: fc.constantFrom(1, 7, 40),
});

describe('a search in stored pages', () => {
  it('misses no value that contains the needle, and finds no text that no value contains', async () => {
    const path = join(folder, 'a.parquet');
    const seen = { ruledOut: 0, found: 0, left: 0 };
    const story = fc.record({
      values: fc.array(value, { minLength: 1, maxLength: 80 }),
      shape,
      of: fc.nat(),
      cut: fc.tuple(fc.nat(7), fc.integer({ min: 1, max: 5 })),
      other: fc.option(fc.constantFrom('sy', '!', 'k', '\ufffd', '~~'), { freq: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(
        story,
        async ({ values, shape: { encoding, codec, pageSize, spanRows }, of, cut, other }) => {
          const column = {
            name: 't',
            type: 'BYTE_ARRAY',
            data: values,
            nullable: true,
            ...(encoding === undefined ? {} : { encoding }),
          } as ColumnSource;
          const content = parquetWriteBuffer({ columnData: [column], codec, pageSize, rowGroupSize: 100 });
          await writeFile(path, new Uint8Array(content));
          const file = await readForeignFile(path, 'parquet');
          const read = readingOf(file, path, 0, 0, spanRows);
          const wanted = of % read.spans.length;
          // Of a value that is searched: texts of others are rarely found.
          const row = Math.min(wanted * spanRows + (of % spanRows), values.length - 1);
          const text = Buffer.from(values[row] ?? []).toString('utf8');
          const sought = other ?? [...text].slice(cut[0], cut[0] + cut[1]).join('');
          if (sought === '') return;
          const needles = [kernelNeedle(Buffer.from(sought), false)];
          const searched = await searchParquet({ ...read, wanted }, needles);
          if (searched === null) {
            seen.left++;
            return;
          }
          const { spans } = await decodeForeign({ ...read, wanted });
          expect(searched.spans.map(({ span }) => span)).toEqual(spans.map(({ span }) => span));
          const holds = spans.map(({ column: decoded }) =>
            columnValues(decoded).some((one) => one !== null && String(one).includes(sought)),
          );
          for (const [i, { mayHold }] of searched.spans.entries()) if (holds[i]) expect(mayHold).toBe(true);
          const page = values.length;
          if (!values.slice(0, page).some((one) => one !== null && Buffer.from(one).includes(sought)))
            expect(searched.spans.every(({ mayHold }) => !mayHold)).toBe(true);
          if (holds.includes(true)) seen.found++;
          else seen.ruledOut++;
        },
      ),
      { numRuns },
    );
    if (isWhole) expect(Math.min(seen.found, seen.ruledOut, seen.left)).toBeGreaterThan(0);
  });

  it('leaves to decoding what only decoded values show', async () => {
    const path = join(folder, 'b.parquet');
    const data = [Uint8Array.of(0x61, 0xff, 0x62), Uint8Array.of(0x63)];
    const columnData = [{ name: 't', type: 'BYTE_ARRAY', data, encoding: 'PLAIN' }] as ColumnSource[];
    await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData })));
    const file = await readForeignFile(path, 'parquet');
    const read = readingOf(file, path, 0, 0);
    const search = async (text: string): Promise<boolean | undefined> =>
      (await searchParquet(read, [kernelNeedle(Buffer.from(text), false)]))?.spans[0]!.mayHold;
    expect(await search('a\ufffdb')).toBeUndefined();
    expect([await search('a'), await search('ab'), await search('c')]).toEqual([true, false, true]);
  });

  it('names a page that does not consist of its strings', async () => {
    const path = join(folder, 'c.parquet');
    const data = Array.from({ length: 50 }, (_, i) => `text ${i}`);
    const columnData = [{ name: 't', type: 'STRING', data, encoding: 'PLAIN', nullable: false }];
    const content = parquetWriteBuffer({ columnData: columnData as ColumnSource[], codec: 'UNCOMPRESSED' });
    await writeFile(path, new Uint8Array(content));
    const file = await readForeignFile(path, 'parquet');
    const broken = await readFile(path);
    const at = broken.indexOf('text 7') - 4;
    broken.writeUInt32LE(1_000_000, at);
    await writeFile(path, broken);
    const needles = [kernelNeedle(Buffer.from('nowhere'), false)];
    await expect(searchParquet(readingOf(file, path, 0, 0), needles)).rejects.toMatchObject({
      code: 'damaged',
      path,
      column: 't',
    });
  });
});

describe('the first search of an attached file', () => {
  const nowMs = Date.UTC(2025, 0, 3);
  const schema = makeSchema([
    { name: 'time', type: 'time', attached: { column: 'time', unit: 'ms' } },
    { name: 'message', type: 'string', index: true },
  ]);
  const special = ['A Needle', '\u212aelvin', 'zażółć', ''];
  const rowCount = 7200;
  const rows = Array.from({ length: rowCount }, (_, i): Row => {
    const filling = `${(i * 2654435761) % 4294967296} ${i % 97} `.repeat(50);
    const text = `no. ${i} ${filling}${i > rowCount - 5 ? special[rowCount - 1 - i]! : ''} end`;
    return [BigInt(nowMs - 86_400_000 + i), i % 13 === 4 ? null : text];
  });

  it('gives the answer of the model, and reads each text once if none contains the needle', async () => {
    const path = join(folder, 'd.parquet');
    const rowGroupRows = 1800;
    await writeParquet(path, schema, rows, { rowGroupRows, pageBytes: 100_000 });
    const { rowGroups } = await readForeignFile(path, 'parquet');
    for (const { chunks } of rowGroups)
      expect(chunks[1]!.uncompressedBytes).toBeGreaterThan(streamedBytesMin);
    const textBytes = rowGroups.reduce((sum, { chunks }) => sum + chunks[1]!.bytes, 0);
    const dataset = placed(schema, [rows], nowMs);
    for (const text of ['nowhere', 'a nEEDLE', 'kelvin', 'ZAŻÓŁĆ', '7100 ']) {
      const archive = await openOn(new MemoryDirectory(), () => nowMs, workers);
      const store = await archive.agent('web', schema);
      await store.attach({ adds: [{ path, format: 'parquet', constants: {} }], moves: [], removes: [] });
      const query: Query = {
        limit: 100,
        after: undefined,
        before: undefined,
        predicates: [{ kind: 'string', field: 1, op: 'like', value: text }],
      };
      const scan = await store.scan(query);
      const pieces: Uint8Array[] = [];
      for await (const piece of scan.lines) pieces.push(piece);
      expect(Buffer.concat(pieces).toString('utf8'), text).toBe(answerOf(dataset, query));
      // A row group that contains the text is read once more for decoding.
      const isNowhere = scan.stats.bytesRead === textBytes;
      expect(isNowhere, text).toBe(text === 'nowhere');
      if (isNowhere) expect(scan.stats.columnsDecoded).toBe(rowGroups.length);
      await archive.close();
    }
  });
});
