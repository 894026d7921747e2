import { expect, it } from 'vitest';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { makeSchema } from '../../engine/core/schema.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { append, load, noon, openCompacting, textOf } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { WriterBed } from './writer-bed.js';

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
]);
const hourMs = 3_600_000;
const cluster = {
  ask: () => Promise.reject(new Error('nothing is in the far tier')),
  count: () => Promise.reject(new Error('nothing is in the far tier')),
};

it('a reader answers and counts as its writer does once rules have removed rows there', async () => {
  const archive = await openCompacting(new MemoryDirectory(), () => noon);
  const rules = [
    {
      where: [{ field: 'level', type: 'string' as const, op: 'exact' as const, values: ['debug'] }],
      periodMs: 24 * hourMs,
    },
  ];
  const retention = { periodMs: null, bytesMax: null, intervalMs: hourMs, graceMs: 0, rules };
  const writer = await archive.agent('a', schema, retention);
  const bed = await WriterBed.start(new Map([['a', writer]]));
  const door = bed.door();
  const reader: ReadableStore = new ReaderArchive({
    writer: door,
    cluster,
    lagMsMax: 0,
    workers: new WorkerPool(0),
  }).agent('a');
  const answer = async (store: ReadableStore, limit: number): Promise<string> =>
    textOf((await store.scan({ limit, predicates: [] })).lines);
  try {
    const rows = Array.from({ length: 96 }, (_, i) => [
      BigInt(noon - (100 - i) * hourMs),
      ['debug', 'info', 'error'][i % 3]!,
    ]);
    await load(writer, rows);
    await append(writer, [[BigInt(noon), 'info']], 'live');
    await reader.snapshot();
    expect((await reader.count({ predicates: [] })).count).toBe(97);

    await archive.retireNow();
    while (await archive.compactNext());
    await reader.snapshot();
    const left = (await writer.count({ predicates: [] })).count;
    expect(left).toBeLessThan(97);
    expect((await reader.count({ predicates: [] })).count).toBe(left);
    for (const limit of [1, 10, 1000]) {
      const expected = await answer(writer, limit);
      expect(await answer(reader, limit)).toBe(expected);
      expect(expected.split('\n').length - 1).toBe(Math.min(limit, left));
    }
  } finally {
    door.close();
    await bed.close();
    await archive.close();
  }
});
