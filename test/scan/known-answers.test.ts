import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { sharedMemory } from '../../engine/core/shared-memory.js';
import { knownQueriesMax } from '../../engine/core/limits.js';
import type { Query, ScanStats } from '../../engine/scan/query.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { answerOf } from '../model/answer.js';
import type { Value } from '../model/dataset.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { ModelStore } from '../engine/store/model-store.js';

const hour = 3_600_000;
const newest: Query = { limit: 10, predicates: [] };

function row(number: number): Value[] {
  return [BigInt(noon - 2 * hour + number * 1000), BigInt(number), null, `no. ${number}`];
}

/** A store, and its expected records. */
async function filled(
  rows: number,
): Promise<{ store: AgentStore; model: ModelStore; close(): Promise<void> }> {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const model = new ModelStore(schema);
  const all = Array.from({ length: rows }, (_, i) => row(i));
  await append(store, all, 'live');
  model.live(all, noon, hour);
  return { store, model, close: () => archive.close() };
}

/** The only piece of an answer, and what it has cost. The scan is not ended. */
async function begin(store: AgentStore, query: Query, joins = true) {
  const { lines, stats } = await store.scan(query, { lends: true, joins });
  const pieces = lines[Symbol.asyncIterator]();
  return { pieces, stats, bytes: (await pieces.next()).value as Uint8Array };
}

async function ask(
  store: AgentStore,
  query: Query,
  joins = true,
): Promise<{ bytes: Uint8Array; stats: ScanStats }> {
  const { pieces, stats, bytes } = await begin(store, query, joins);
  expect(await pieces.next()).toEqual({ done: true, value: undefined });
  return { bytes, stats };
}

describe('short answers', () => {
  it('are kept when they are asked for again, for all who ask the same of a state, and again in the next', async () => {
    const { store, close } = await filled(50);
    const filter = { kind: 'int', field: 1, op: 'gte', value: 30n } as const;
    for (const query of [newest, { ...newest, predicates: [filter] }]) {
      const once = await ask(store, query);
      expect(once.stats).toMatchObject({ rowsReturned: 10, rowGroupsScanned: 1 });
      const again = await ask(store, query);
      expect(again.stats).toMatchObject({ rowsReturned: 10, rowGroupsScanned: 1 });
      for (let i = 0; i < 3; i++) {
        const { bytes, stats } = await ask(store, query);
        expect(bytes).toBe(again.bytes);
        expect(stats).toMatchObject({
          rowsReturned: 10,
          rowGroups: 1,
          rowGroupsScanned: 0,
          columnsCached: 0,
        });
      }
      expect((await ask(store, query, false)).stats.rowGroupsScanned).toBe(1);
    }
    await append(store, [row(50)], 'live');
    const later = await ask(store, newest);
    expect(later.stats.rowGroupsScanned).toBe(1);
    expect(Buffer.from(later.bytes).toString()).toContain('no. 50');
    await close();
  });

  it('are kept up to a number, the newest ones', async () => {
    const { store, close } = await filled(50);
    const takenBytes = sharedMemory().takenBytes;
    const queries = Array.from({ length: knownQueriesMax + 1 }, (_, i) => ({ ...newest, limit: i + 1 }));
    const scanned = async (query: Query): Promise<number> => (await ask(store, query)).stats.rowGroupsScanned;
    for (const query of [...queries, ...queries]) expect(await scanned(query)).toBe(1);
    for (const query of queries.slice(1)) expect(await scanned(query)).toBe(0);
    expect(await scanned(queries[0]!)).toBe(1);
    expect(sharedMemory().takenBytes).toBe(takenBytes);
    await close();
  });

  it('are never older than the stored records, and do not change while anybody reads them', async () => {
    const queries = Array.from({ length: knownQueriesMax + 4 }, (_, i) => ({ ...newest, limit: i + 1 }));
    const step = fc.oneof(
      {
        weight: 12,
        arbitrary: fc.record({
          query: fc.constantFrom(...queries, ...queries.slice(9, 12)),
          joins: fc.boolean(),
        }),
      },
      { weight: 6, arbitrary: fc.record({ ends: fc.nat() }) },
      fc.constant('append' as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { store, model, close } = await filled(20);
        const takenBytes = sharedMemory().takenBytes;
        const open: (Awaited<ReturnType<typeof begin>> & { readonly expected: string })[] = [];
        let rows = 20;
        for (const next of steps) {
          if (next === 'append') {
            const added = [row(rows++)];
            await append(store, added, 'live');
            model.live(added, noon, hour);
          } else if ('query' in next) {
            const expected = answerOf(model, next.query);
            open.push({ ...(await begin(store, next.query, next.joins)), expected });
          } else if (open.length > 0) {
            await open.splice(next.ends % open.length, 1)[0]!.pieces.return!();
          }
          for (const { bytes, expected } of open) expect(Buffer.from(bytes).toString()).toBe(expected);
        }
        for (const { pieces } of open) await pieces.return!();
        expect(sharedMemory().takenBytes).toBe(takenBytes);
        await close();
      }),
      { numRuns: caseCount(100) },
    );
  });
});
