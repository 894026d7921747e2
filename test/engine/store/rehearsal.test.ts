import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { rehearse } from '../../../engine/archive/rehearsal.js';
import { Store } from '../../../engine/archive/store.js';
import { makeSchema, openArchive, WorkerPool, type Archive, type Schema } from '../../../engine/index.js';
import type { OpenOptions } from '../../../engine/archive/open-options.js';
import type { Query, ScanStats } from '../../../engine/scan/plan/query.js';
import { tableOf } from '../../foreign/arrow-tables.js';
import { load } from './memory-archive.js';

/** Without strings, so that there are no filters: what is in memory is there because of a query. */
const numbers = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
]);
const texts = makeSchema([...numbers.fields, { name: 'text', type: 'string' }]);
const folder = mkdtempSync(join(tmpdir(), 'logstrata-rehearsal-'));
const workers = new WorkerPool(1);
const never = new AbortController().signal;

beforeAll(async () => {
  const archive = await open();
  for (const [name, schema] of [
    ['numbers', numbers],
    ['texts', texts],
  ] as const) {
    const store = await archive.agent(name, schema);
    const rows = Array.from({ length: 2000 }, (_, n) => [
      1_767_225_600_000n + BigInt(n),
      BigInt(n),
      `text ${n}`,
    ]);
    await load(
      store,
      rows.map((row) => row.slice(0, schema.fields.length)),
    );
  }
  await archive.agent('empty', numbers);
  await archive.close();
});
afterAll(async () => {
  await workers.close();
  rmSync(folder, { recursive: true });
});

function open(options: Partial<OpenOptions> = {}): Promise<Archive> {
  return openArchive(folder, {
    mode: 'write',
    role: 'test',
    workers,
    background: { threads: 0 },
    ...options,
  });
}

async function stored(archive: Archive, name: string, schema: Schema): Promise<Store> {
  const store = await archive.agent(name, schema);
  if (!(store instanceof Store)) throw new Error('the store is the engine’s own');
  return store;
}

const poolBytes = async (archive: Archive): Promise<number> => (await archive.figures()).pool.bytes;

async function ask(store: Store, query: Query): Promise<{ rows: number; stats: ScanStats }> {
  const { lines, stats } = await store.scan(query);
  let rows = 0;
  for await (const piece of lines) rows += piece.filter((byte) => byte === 10).length;
  return { rows, stats };
}

const newest: Query = { limit: 100, predicates: [] };

describe('a rehearsal', () => {
  it('has read what the first query for the newest records reads', async () => {
    for (const rehearses of [false, true]) {
      const archive = await open();
      const store = await stored(archive, 'texts', texts);
      if (rehearses) await rehearse(store.context.state, workers, never);
      // A replaced file can be removed although the rehearsal has read it.
      expect(store.context.state.pinnedBefore(Infinity)).toBe(false);
      const { rows, stats } = await ask(store, newest);
      expect(rows).toBe(100);
      if (rehearses) expect(stats.bytesRead).toBe(0);
      else expect(stats.bytesRead).toBeGreaterThan(0);
      await archive.close();
    }
  });

  it('takes place when a process is opened to answer, on the first agent that has records', async () => {
    const archive = await open({ anticipates: true });
    await stored(archive, 'empty', numbers);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await poolBytes(archive)).toBe(0);
    await stored(archive, 'numbers', numbers);
    await vi.waitFor(async () => expect(await poolBytes(archive)).toBeGreaterThan(0), 20_000);
    await archive.close();
    const quiet = await open();
    await stored(quiet, 'numbers', numbers);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await poolBytes(quiet)).toBe(0);
    await quiet.close();
  });

  it('reads no files of other programs, which may be far away', async () => {
    const path = join(folder, 'a.arrow');
    const table = tableOf({ n: { type: new arrow.Int32(), values: [1, 2, 3] } }, 3);
    writeFileSync(path, arrow.tableToIPC(table, 'file'));
    const fields = makeSchema([{ name: 'n', type: 'int' }]);
    const archive = await open();
    const add = { path, format: 'arrow' as const, constants: {} };
    const store = await stored(archive, 'attached', fields);
    expect((await store.attach({ adds: [add], moves: [], removes: [] })).problems).toEqual([]);
    expect(rehearse(store.context.state, workers, never)).toBeUndefined();
    expect((await ask(store, newest)).rows).toBe(3);
    await archive.close();
  });

  it('ends with its archive, whenever that is closed', async () => {
    for (let turns = 0; turns < 12; turns += 2) {
      const archive = await open({ anticipates: true });
      const { context } = await stored(archive, 'texts', texts);
      for (let i = 0; i < turns; i++) await new Promise(setImmediate);
      await archive.close();
      expect(context.state.pinnedBefore(Infinity)).toBe(false);
    }
  });

  it('leaves a failure to the query that a user asks', async () => {
    const archive = await open();
    const { context } = await stored(archive, 'texts', texts);
    const end = new AbortController();
    end.abort();
    await rehearse(context.state, workers, end.signal);
    expect(context.state.pinnedBefore(Infinity)).toBe(false);
    await archive.close();
  });
});
