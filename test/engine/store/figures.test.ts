import { expect, it } from 'vitest';
import type { Value } from '../../model/dataset.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { batchFromRows } from '../../model/rows.js';
import { append, load, noExtras, noon, openCompacting, openOn, schema } from './memory-archive.js';

const rows = (from: number, count: number): Value[][] =>
  Array.from({ length: count }, (_, i) => [BigInt(noon + from + i), BigInt(i), null, `line ${from + i}`]);

it('the figures of an archive state what it holds and has done', async () => {
  const directory = new MemoryDirectory();
  const archive = await openCompacting(directory);
  const store = await archive.agent('web', schema);
  for (const from of [0, 100, 200]) await load(store, rows(from, 100));
  await append(store, rows(300, 7), 'live');
  const { agents, pool, disk } = await archive.figures();
  expect(agents).toHaveLength(1);
  const { bytesSealed, bytesHot } = await store.stats();
  expect(agents[0]).toMatchObject({
    agent: 'web',
    isDamaged: false,
    records: 307,
    segments: { lz4: { files: 3, bytes: bytesSealed }, zstd: { files: 0, bytes: 0 } },
    hotRecords: 7,
    hotBytes: bytesHot,
    counters: { records: 307, rejected: 0 },
    retired: { records: 0 },
    commits: { failed: 0 },
    compaction: { rewrites: 0 },
  });
  // The commits are those of the fields, three loads, the hot file and a batch.
  expect(agents[0]!.commits.done).toBe(6);
  expect(pool.bytesMax).toBeGreaterThan(0);
  expect(disk).toEqual({ sizeBytes: 1e12, freeBytes: 1e12 });

  for (let i = 0; i < 20; i++) await load(store, rows(1000 + 10 * i, 10));
  const many = (await archive.figures()).agents[0]!;
  while (await archive.compactNext());
  const { compaction, segments } = (await archive.figures()).agents[0]!;
  expect(compaction!.rewrites).toBeGreaterThan(0);
  expect(many.segments.lz4.files - segments.lz4.files).toBe(
    compaction!.segmentsRead - compaction!.segmentsWritten,
  );
  expect(many.segments.lz4.bytes - segments.lz4.bytes).toBe(compaction!.bytesRead - compaction!.bytesWritten);
  await archive.close();
});

it('a commit that fails on the disk marks its agent as troubled until a commit succeeds', async () => {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  const web = await archive.agent('web', schema);
  const app = await archive.agent('app', schema);
  await append(web, rows(0, 1), 'live');
  expect(await archive.troubles()).toEqual([]);
  // Only the write of the batch fails, and not the steps after it.
  directory.setFaults({ failAtOperation: directory.mutations + 1 });
  await expect(append(web, rows(1, 1), 'live')).rejects.toMatchObject({ code: 'io' });
  expect(await archive.troubles()).toEqual([
    { agent: 'web', reason: expect.stringContaining('nothing can be stored: ') as string },
  ]);
  await append(app, rows(0, 1), 'live');
  expect(await archive.troubles()).toHaveLength(1);
  expect((await archive.figures()).agents.map(({ commits }) => commits.failed)).toEqual([1, 0]);
  await append(web, rows(1, 1), 'live');
  expect(await archive.troubles()).toEqual([]);
  await archive.close();
});

it('a commit that is refused for another reason than the disk does not mark the agent', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const old = store.append(batchFromRows(schema, rows(0, 1)), { ...noExtras, schemaVersion: 99 }, 'live');
  await expect(old).rejects.toMatchObject({ code: 'conflict' });
  expect(await archive.troubles()).toEqual([]);
  await archive.close();
});

it('a full disk marks all agents, and a single agent only as long as the disk is full', async () => {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  const store = await archive.agent('web', schema);
  directory.setFaults({ freeBytes: directory.bytesWritten });
  directory.free = 1e-6;
  await expect(append(store, rows(0, 1), 'live')).rejects.toMatchObject({ code: 'disk_full' });
  expect((await archive.troubles()).map(({ agent }) => agent)).toEqual(['web', undefined]);
  directory.setFaults({});
  directory.free = 0.5;
  expect(await archive.troubles()).toEqual([]);
  // On a file system that reports no size, the mark is removed by the next commit.
  directory.free = null;
  expect((await archive.troubles()).map(({ agent }) => agent)).toEqual(['web']);
  await append(store, rows(0, 1), 'live');
  expect(await archive.troubles()).toEqual([]);
  await archive.close();
});
