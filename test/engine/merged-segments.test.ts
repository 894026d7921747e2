import { expect, test } from 'vitest';
import { makeSchema } from '../../engine/core/schema.js';
import { buildingFolder } from '../../engine/store/manifest/commit.js';
import { MergedSegments } from '../../engine/store/load/segment-builder.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { batchFromRows } from '../model/rows.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

const schema = makeSchema([{ name: 'text', type: 'string' }]);

test('the rows of a batch count only their own bytes toward the limit of a row group', async () => {
  const directory = new MemoryDirectory();
  const target = { agent: 'web', id: 'unit', schema, schemaVersion: 1, codec: 'lz4' as const };
  await directory.makeDirectory(buildingFolder(target.agent, target.id));
  const workers = new WorkerPool(0);
  const merged = new MergedSegments({ ...target, directory, workers, replaces: [] });
  // Most of the batch is in its last row, which is not taken.
  const rows = Array.from({ length: 64 }, (_, i) => [i < 63 ? `row ${i}` : 'long '.repeat(1_600_000)]);
  const batch = batchFromRows(schema, rows);
  for (let from = 0; from < 60; from += 2) await merged.add({ batch, from, to: from + 1 }, 1, from + 1);
  const [segment] = await merged.finish();
  expect(segment!.rowGroupRows).toEqual([30]);
});
