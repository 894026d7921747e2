import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as arrow from 'apache-arrow';
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Archive } from '../../../engine/archive/archive.js';
import type { OpenOptions } from '../../../engine/archive/open-options.js';
import { AgentStore } from '../../../engine/archive/agent-store.js';
import { warmUp } from '../../../engine/archive/warm-up.js';
import { makeSchema, WorkerPool, type Schema } from '../../../engine/index.js';
import type { Query, ScanStats } from '../../../engine/scan/query.js';
import { tableOf } from '../../foreign/arrow-tables.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { load, noon, openOn } from './memory-archive.js';

/** Without strings, so that there are no filters: what is in memory is there because of a query. */
const numbers = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
]);
const texts = makeSchema([...numbers.fields, { name: 'text', type: 'string' }]);
const newest: Query = { limit: 100, predicates: [] };
const workers = new WorkerPool(1);
const never = new AbortController().signal;
let directory: MemoryDirectory;

/** One agent has no records, the others have 2000 in one segment. */
beforeEach(async () => {
  directory = new MemoryDirectory();
  const archive = await open();
  await stored(archive, 'empty', numbers);
  const rows = Array.from({ length: 2000 }, (_, n) => [BigInt(noon + n), BigInt(n), `text ${n}`]);
  await load(await stored(archive, 'texts', texts), rows);
  await load(
    await stored(archive, 'numbers', numbers),
    rows.map((row) => row.slice(0, 2)),
  );
  await archive.close();
});
afterAll(() => workers.close());

function open(options: Partial<OpenOptions> = {}): Promise<Archive> {
  return openOn(directory, () => noon, workers, options);
}

async function stored(archive: Archive, name: string, schema: Schema): Promise<AgentStore> {
  const store = await archive.agent(name, schema);
  if (!(store instanceof AgentStore)) throw new Error('the store is the engine’s own');
  return store;
}

async function ask(store: AgentStore): Promise<{ rows: number; stats: ScanStats }> {
  const { lines, stats } = await store.scan(newest);
  let rows = 0;
  for await (const piece of lines) rows += piece.filter((byte) => byte === 10).length;
  return { rows, stats };
}

describe('a warm-up', () => {
  it('has read what the first query for the newest records reads', async () => {
    for (const isWarm of [false, true]) {
      const archive = await open();
      const store = await stored(archive, 'texts', texts);
      if (isWarm) expect(await warmUp(store.context.state, workers, never)).toBe(true);
      // A replaced file can be removed although the warm-up has read it.
      expect(store.context.state.pinnedBefore(Infinity)).toBe(false);
      const { rows, stats } = await ask(store);
      expect(rows).toBe(100);
      if (isWarm) expect(stats.bytesRead).toBe(0);
      else expect(stats.bytesRead).toBeGreaterThan(0);
      await archive.close();
    }
  });

  it('takes place when a process is opened to answer, on the first agent that has records', async () => {
    const archive = await open({ anticipates: true });
    await stored(archive, 'empty', numbers);
    await stored(archive, 'numbers', numbers);
    const poolBytes = async (): Promise<number> => (await archive.figures()).pool.bytes;
    await vi.waitFor(async () => expect(await poolBytes()).toBeGreaterThan(0), 60_000);
    await archive.close();
  });

  it('reads no files of other programs, which may be far away, but has threads load what decodes them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-warm-up-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'a.arrow');
    const table = tableOf({ n: { type: new arrow.Int32(), values: [1, 2, 3] } }, 3);
    writeFileSync(path, arrow.tableToIPC(table, 'file'));
    const archive = await open();
    const store = await stored(archive, 'attached', makeSchema([{ name: 'n', type: 'int' }]));
    const add = { path, format: 'arrow' as const, constants: {} };
    expect((await store.attach({ adds: [add], moves: [], removes: [] })).problems).toEqual([]);
    // A pool that has no thread yet lets jobs run where they are asked for.
    const fresh = new WorkerPool(1, undefined, 1);
    onTestFinished(() => fresh.close());
    expect(await warmUp((await stored(archive, 'empty', numbers)).context.state, fresh, never)).toBe(false);
    expect(fresh.ownBytesMax).toBe(1);
    rmSync(path);
    expect(await warmUp(store.context.state, fresh, never)).toBe(false);
    expect(fresh.ownBytesMax).toBe(0);
    writeFileSync(path, arrow.tableToIPC(table, 'file'));
    expect((await ask(store)).rows).toBe(3);
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

  it('leaves damage to the query that a user asks', async () => {
    const archive = await open();
    const store = await stored(archive, 'texts', texts);
    const entry = store.context.state.manifest!.segments[0]!;
    const file = await directory.openWrite(`texts/${entry.file}`);
    const from = 4 + entry.headerBytes;
    await file.write(from, new Uint8Array(entry.footerOffset - from).fill(0xa5));
    await file.close();
    await warmUp(store.context.state, workers, never);
    await expect(ask(store)).rejects.toMatchObject({ code: 'damaged' });
    await archive.close();
  });
});
