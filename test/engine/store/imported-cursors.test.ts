import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { Retention } from '../../../engine/store/manifest/retention-policy.js';
import type { Value } from '../../model/dataset.js';
import { batchFromRows } from '../../model/rows.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, load, noExtras, noon, openCompacting, openOn, schema } from './memory-archive.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const rowsOfDay = 70_000;

const rowAt = (timeMs: number, text: string): Value[] => [BigInt(timeMs), 1n, null, text];

/** Imports rows under ordinals that count up from `from`. */
async function importRows(store: AgentStore, from: number, rows: readonly Value[][]): Promise<void> {
  const session = await store.beginCursorLoad();
  try {
    for (let i = 0; i < rows.length; i += 10_000) {
      const piece = rows.slice(i, i + 10_000);
      const ordinals = Float64Array.from(piece, (_, k) => from + i + k);
      await session.append(batchFromRows(schema, piece), ordinals);
    }
    await session.commit({ checkpoints: [], counters: noExtras.counters });
  } finally {
    await session.abort();
  }
}

/** Three days of records, the last of which ends a day before noon. */
function threeDays(): Value[][] {
  return [4, 3, 2].flatMap((back) =>
    Array.from({ length: rowsOfDay }, (_, i) => rowAt(noon - back * dayMs + i, `${back} days ago`)),
  );
}

describe('records that are imported with their cursors', () => {
  it('age by their own times, in segments that do not span days, also after compaction', async () => {
    const directory = new MemoryDirectory();
    const twoDays: Retention = { periodMs: 2.5 * dayMs, bytesMax: null, intervalMs: hourMs, graceMs: 0 };
    const archive = await openCompacting(directory);
    const store = await archive.agent('web', schema, twoDays);
    await importRows(store, 1, threeDays());
    const segments = (): Promise<number> => store.stats().then((stats) => stats.segments);
    expect(await segments()).toBe(3);
    await store.compact();
    expect(await segments()).toBe(3);
    // Nothing is removed as long as no newer record has arrived.
    await archive.retireNow();
    expect((await store.stats()).records).toBe(3 * rowsOfDay);
    await load(store, [rowAt(noon - 1000, 'now')]);
    await archive.retireNow();
    await archive.retireNow();
    const stats = await store.stats();
    expect(stats.records).toBe(rowsOfDay + 1);
    expect(await answer(store, { limit: 1, after: { partition: 0, ordinal: 0 } })).toContain(
      `"_cursor":"${(2 * rowsOfDay + 1).toString(16).padStart(16, '0')}"`,
    );
    await archive.close();
  });

  it('are refused if the agent has records of an earlier time, also if these arrive during the import', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    const session = await store.beginCursorLoad();
    await session.append(batchFromRows(schema, [rowAt(noon - hourMs, 'a')]), Float64Array.of(7));
    await load(store, [rowAt(noon - 5 * hourMs, 'earlier')]);
    const committed = session.commit({ checkpoints: [], counters: noExtras.counters });
    await expect(committed).rejects.toMatchObject({ code: 'conflict' });
    await session.abort();
    await expect(importRows(store, 1, [rowAt(noon - hourMs, 'a')])).rejects.toMatchObject({
      code: 'conflict',
    });
    // Records of an earlier time can still be imported.
    await importRows(store, 8, [rowAt(noon - 6 * hourMs, 'b')]);
    expect((await answer(store)).split('\n').slice(0, -1)).toHaveLength(2);
    await archive.close();
  });

  it('must have ascending cursors that no other record of the agent has', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    await importRows(store, 5, [rowAt(noon, 'a')]);
    for (const ordinal of [4, 5, 2 ** 40]) {
      const refused = importRows(store, ordinal, [rowAt(noon, 'b')]);
      await expect(refused).rejects.toMatchObject({ code: 'invalid' });
    }
    // Of two concurrent imports, the second to be published would assign the same positions twice.
    const both = [await store.beginCursorLoad(), await store.beginCursorLoad()];
    for (const session of both)
      await session.append(batchFromRows(schema, [rowAt(noon, 'c')]), Float64Array.of(9));
    await both[0]!.commit({ checkpoints: [], counters: noExtras.counters });
    const second = both[1]!.commit({ checkpoints: [], counters: noExtras.counters });
    await expect(second).rejects.toMatchObject({ code: 'conflict' });
    for (const session of both) await session.abort();
    expect((await store.stats()).records).toBe(2);
    await archive.close();
  });
});
