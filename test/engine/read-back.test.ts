import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { arraysOf, batchBytes, columnValue } from '../../engine/columns/column.js';
import { sortedPageRowsMax } from '../../engine/core/limits.js';
import { batchFromRows } from '../model/rows.js';
import { buildingFolder } from '../../engine/store/manifest/commit.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { runOfSegments } from '../../engine/store/load/read-back.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { SegmentAssembly } from '../../engine/store/load/segment-builder.js';
import { SpillFile, type SortedPage } from '../../engine/store/disk/spill.js';
import { StreamedTimes } from '../../engine/store/load/streamed-times.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import type { Value } from '../model/dataset.js';
import { noon, schema } from './store/memory-archive.js';

const folders: string[] = [];
const pools: WorkerPool[] = [];

afterAll(async () => {
  for (const pool of pools) await pool.close();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function freshReal(): Promise<Directory> {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-read-back-'));
  folders.push(folder);
  return openRealDirectory(folder);
}

/** Rows 10 s apart over more than a day: strings and numbers that repeat, others that do not, and nulls. */
const rows = Array.from({ length: 3 * sortedPageRowsMax + 17 }, (_, i): Value[] => [
  BigInt(noon + i * 10_000),
  i % 11 === 0 ? null : BigInt(i % 3),
  i / 4,
  i % 7 === 0 ? null : i % 2 === 0 ? 'again' : `once ${i}`,
]);

/** Writes the rows as a load does, and reads back all of their pages. */
async function pagesReadBack(directory: Directory, workers: WorkerPool): Promise<SortedPage[]> {
  const folder = buildingFolder('web', 'unit');
  await directory.makeDirectory(folder);
  const spill = await SpillFile.create(directory, `${folder}/runs`);
  const times = new StreamedTimes(() => Promise.resolve(spill));
  const context = { directory, agent: 'web', id: 'unit', schema, codec: 'lz4', workers } as const;
  const assembly = new SegmentAssembly(context, times);
  for (let from = 0; from < rows.length; from += 1000) {
    const batch = batchFromRows(schema, rows.slice(from, from + 1000));
    const timesMs = Float64Array.from(rows.slice(from, from + 1000), ([time]) => Number(time));
    const page: SortedPage = { batch, timesMs, bytes: batchBytes(batch) };
    await assembly.add([{ page, from: 0, to: batch.length }]);
  }
  const run = runOfSegments(context, await assembly.finishUnplaced(1), times);
  expect(run).toMatchObject({ rows: rows.length, minMs: noon, maxMs: noon + (rows.length - 1) * 10_000 });
  const pages: SortedPage[] = [];
  for (let page = 0; page < run.pages; page++) pages.push(await run.readPage(page));
  await spill.close();
  return pages;
}

describe.each([
  ['on this thread', () => Promise.resolve(new MemoryDirectory() as Directory), 0],
  ['on others', freshReal, 2],
])('segments that are read back and decoded %s', (_, fresh, threads) => {
  it('return the rows that were written, in small pages that each have memory of their own', async () => {
    const pool = new WorkerPool(threads);
    pools.push(pool);
    const pages = await pagesReadBack(await fresh(), pool);
    const found = pages.flatMap(({ batch, timesMs }) =>
      Array.from({ length: batch.length }, (_, row) => [
        timesMs[row],
        ...batch.columns.map((column) => columnValue(column, row)),
      ]),
    );
    expect(found).toEqual(rows.map((row) => [Number(row[0]), ...row]));
    const seen = new Set<ArrayBufferLike>();
    for (const { batch, bytes } of pages) {
      expect(batch.length).toBeLessThanOrEqual(sortedPageRowsMax);
      const buffers = new Set(batch.columns.flatMap(arraysOf).map(({ buffer }) => buffer));
      let heldBytes = 0;
      for (const buffer of buffers) {
        expect(seen.has(buffer)).toBe(false);
        seen.add(buffer);
        heldBytes += buffer.byteLength;
      }
      expect(heldBytes).toBe(bytes);
    }
  });
});
