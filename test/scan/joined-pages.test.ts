import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { AgentStore } from '../../engine/archive/archive.js';
import { sharedMemory } from '../../engine/memory/shared-memory.js';
import { turnPagesMax } from '../../engine/terms/limits.js';
import type { Query } from '../../engine/scan/plan/query.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { answerOf } from '../model/answer.js';
import type { Value } from '../model/dataset.js';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { ModelStore } from '../engine/store/model-store.js';
import type { Scan } from '../../engine/scan/plan/scan.js';

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

/** A page whose bytes were handed out and not yet returned. */
interface OpenPage {
  readonly scan: Scan;
  readonly bytes: Uint8Array;
  readonly expected: string;
}

function ask(store: AgentStore, query: Query, joins = true): Scan {
  const scan = store.scan(query, { lends: true, joins });
  if (scan instanceof Promise) throw new Error('a writer answers at once');
  return scan;
}

function read({ lines }: Scan): Uint8Array {
  if (!('now' in lines)) throw new Error('these records are in memory');
  return lines.now()!.value!;
}

function end({ lines }: Scan, early: boolean): void {
  if (!('now' in lines)) throw new Error('these records are in memory');
  if (early) void lines.return();
  else expect(lines.now()).toEqual({ done: true, value: undefined });
}

describe('pages that may be shared', () => {
  it('are written once for all requests in one turn of the event loop, and again in the next', async () => {
    const { store, close } = await filled(50);
    await setImmediate();
    const first = ask(store, newest);
    const others = [1, 2, 3].map(() => ask(store, { ...newest }));
    const bytes = read(first);
    expect(first.stats).toMatchObject({ rowsReturned: 10, rowGroupsScanned: 1, columnsCached: 4 });
    for (const other of others) {
      expect(read(other)).toBe(bytes);
      expect(other.stats).toMatchObject({
        rowsReturned: 10,
        rowGroups: 1,
        rowGroupsScanned: 0,
        columnsCached: 0,
      });
      end(other, false);
    }
    end(first, false);
    for (const query of [
      { ...newest, limit: 11 },
      { ...newest, before: { partition: 1 << 23, ordinal: 1 } },
    ]) {
      const another = ask(store, query);
      expect(another.stats.rowGroupsScanned).toBe(1);
      end(another, true);
    }
    const alone = ask(store, newest, false);
    expect(alone.stats.rowGroupsScanned).toBe(1);
    end(alone, true);
    await setImmediate();
    const later = ask(store, newest);
    expect(later.stats.rowGroupsScanned).toBe(1);
    end(later, true);
    await close();
  });

  it('are kept up to their number limit, the newest ones', async () => {
    const { store, close } = await filled(50);
    await setImmediate();
    const takenBytes = sharedMemory().takenBytes;
    const askedFor = (limit: number): number => {
      const scan = ask(store, { ...newest, limit });
      end(scan, true);
      return scan.stats.rowGroupsScanned;
    };
    for (let limit = 1; limit <= turnPagesMax + 1; limit++) expect(askedFor(limit)).toBe(1);
    for (let limit = 2; limit <= turnPagesMax + 1; limit++) expect(askedFor(limit)).toBe(0);
    expect(askedFor(1)).toBe(1);
    await setImmediate();
    expect(sharedMemory().takenBytes).toBe(takenBytes);
    await close();
  });

  it('are never older than the stored records, and are unchanged until their last reader has finished', async () => {
    // More pages than are kept, with a few of them requested most often.
    const limits = [10, 10, 10, 11, 11, 12, ...Array.from({ length: turnPagesMax }, (_, i) => i + 1)];
    const step = fc.oneof(
      {
        weight: 12,
        arbitrary: fc.record({ limit: fc.constantFrom(...limits), joins: fc.boolean() }),
      },
      { weight: 6, arbitrary: fc.record({ ends: fc.nat(), early: fc.boolean() }) },
      fc.constantFrom('append' as const, 'turn' as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { store, model, close } = await filled(20);
        await setImmediate();
        const takenBytes = sharedMemory().takenBytes;
        const open: OpenPage[] = [];
        let rows = 20;
        for (const next of steps) {
          if (next === 'turn') {
            await setImmediate();
          } else if (next === 'append') {
            const added = [row(rows++)];
            await append(store, added, 'live');
            model.live(added, noon, hour);
          } else if ('limit' in next) {
            const query = { limit: next.limit, predicates: [] };
            const scan = ask(store, query, next.joins);
            open.push({ scan, bytes: read(scan), expected: answerOf(model, query) });
          } else if (open.length > 0) {
            end(open.splice(next.ends % open.length, 1)[0]!.scan, next.early);
          }
          for (const { bytes, expected } of open) expect(Buffer.from(bytes).toString()).toBe(expected);
        }
        for (const { scan } of open) end(scan, true);
        await setImmediate();
        expect(sharedMemory().takenBytes).toBe(takenBytes);
        await close();
      }),
      { numRuns: caseCount(100) },
    );
  });
});
