import { describe, expect, it } from 'vitest';
import { setImmediate } from 'node:timers/promises';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { batchFromRows } from '../../model/rows.js';
import { ordinalMax } from '../../../engine/core/limits.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { publishManifest, readNewestManifest } from '../../../engine/store/manifest/manifest-file.js';
import type { Value } from '../../model/dataset.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import { answer, append, load, noExtras, noon, openOn, openToRead, schema } from './memory-archive.js';

const row = (n: number): Value[] => [BigInt(noon - 60_000 + n), 1n, null, `line ${n}`];
const messages = async (store: AgentStore): Promise<unknown[]> =>
  (await answer(store))
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { message: string }).message);
const cursors = async (store: AgentStore): Promise<string[]> =>
  (await answer(store))
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { _cursor: string })._cursor);

const rejectedLine = { reason: 'no match', file: 'web.log', offset: 0, line: Buffer.from('odd') };

/** A load of one record and one rejected line, up to but without its commit. */
async function begun(store: AgentStore, n: number): ReturnType<AgentStore['beginLoad']> {
  const session = await store.beginLoad();
  await session.append(batchFromRows(schema, [row(n)]), 0);
  await session.reject(rejectedLine);
  return session;
}

/** In memory, an append that nothing delays is done within this many turns of the event loop. */
const turnsOfAppend = 100;

const ending = { checkpoints: [], counters: noExtras.counters };

describe('a batch whose writer ended before it was durable', () => {
  it.each(['writer', 'reader'] as const)('is made durable before the next %s shows it', async (next) => {
    const directory = new MemoryDirectory();
    const store = await (await openOn(directory)).agent('web', schema);
    await append(store, [row(0)], 'live');
    // The write is done, and the sync is not.
    directory.setFaults({ crashAtOperation: directory.mutations + 2 });
    await expect(append(store, [row(1)], 'live')).rejects.toMatchObject({ code: 'closed' });
    const restarted = directory.restart();
    const shown = await (next === 'writer' ? openOn(restarted) : openToRead(restarted));
    expect(await messages(await shown.agent('web', schema))).toEqual(['line 0', 'line 1']);
    const left = await openOn(restarted.crash('lost'));
    expect(await messages(await left.agent('web', schema))).toEqual(['line 0', 'line 1']);
    await left.close();
  });

  it('is written again after a failed sync, because the system reports such a failure only once', async () => {
    const directory = new MemoryDirectory();
    const store = await (await openOn(directory)).agent('web', schema);
    await append(store, [row(0)], 'live');
    // The process ends before it can record how much of the file is durable.
    const sync = directory.mutations + 2;
    directory.setFaults({ failAtOperation: sync, crashAtOperation: sync + 1, failedSyncStays: true });
    await expect(append(store, [row(1)], 'live')).rejects.toMatchObject({ code: 'io' });
    const restarted = directory.restart();
    const shown = await openOn(restarted);
    expect(await messages(await shown.agent('web', schema))).toEqual(['line 0', 'line 1']);
    const left = await openOn(restarted.crash('lost'));
    expect(await messages(await left.agent('web', schema))).toEqual(['line 0', 'line 1']);
    await left.close();
  });

  it('counts if it directly follows the batches that a manifest has counted', async () => {
    const directory = new MemoryDirectory();
    const store = await (await openOn(directory)).agent('web', schema);
    await append(store, [row(0)], 'live');
    await load(store, [row(1)]);
    await append(store, [row(2)], 'live');
    const left = await openOn(directory.crash('kept'));
    const again = await left.agent('web', schema);
    await append(again, [row(3)], 'live');
    expect(new Set(await cursors(again)).size).toBe(4);
    expect((await again.stats()).counters.records).toBe(4);
    await left.close();
  });

  it('keeps the rejected lines that were stored with it', async () => {
    const directory = new MemoryDirectory();
    const store = await (await openOn(directory)).agent('web', schema);
    const extras = { ...noExtras, rejected: [rejectedLine] };
    await store.append(batchFromRows(schema, [row(0)]), extras, 'live');
    const left = await openOn(directory.crash('lost'));
    const again = await left.agent('web', schema);
    expect(await again.verify()).toMatchObject({ damages: [], records: 1 });
    expect((await again.stats()).linesRejected).toBe(1);
    const [entry] = await again.rejectedFiles();
    for await (const lines of again.rejectedLines(entry!))
      expect(lines).toMatchObject([{ reason: 'no match' }]);
    await left.close();
  });
});

describe('a commit that fails', () => {
  it('leaves no file behind once the next commit has succeeded, at whatever step it failed', async () => {
    const extras = { ...noExtras, rejected: [rejectedLine] };
    let hasFailed = true;
    let step = 1;
    for (; hasFailed; step++) {
      const directory = new MemoryDirectory();
      const archive = await openOn(directory);
      const store = await archive.agent('web', schema);
      directory.setFaults({ failAtOperation: directory.mutations + step });
      hasFailed = false;
      await store.append(batchFromRows(schema, [row(0)]), extras, 'live').catch(() => (hasFailed = true));
      directory.setFaults({});
      await store.append(batchFromRows(schema, [row(1)]), extras, 'live');
      await archive.close();
      // A process that only reads removes nothing.
      const reader = await openToRead(directory);
      const verified = await reader.verify('web');
      expect([step, verified]).toMatchObject([step, { damages: [], unnamedFiles: [] }]);
      await reader.close();
    }
    expect(step).toBeGreaterThan(8);
  });

  it('stays failed once other records have its positions, even if all of it is on the disk', async () => {
    const directory = new MemoryDirectory();
    const store = await (await openOn(directory)).agent('web', schema);
    await append(store, [row(0)], 'live');
    directory.setFaults({ failAtOperation: directory.mutations + 2, failedSyncStays: true });
    await expect(append(store, [row(1)], 'live')).rejects.toMatchObject({ code: 'io' });
    directory.setFaults({});
    await append(store, [row(2)], 'live');
    const before = await answer(store);
    const left = await openOn(directory.restart());
    const again = await left.agent('web', schema);
    expect(await answer(again)).toBe(before);
    expect(await messages(again)).toEqual(['line 0', 'line 2']);
    await left.close();
  });

  it('of a load that was refused leaves no file behind', async () => {
    const directory = new MemoryDirectory();
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    const checkpoint = {
      ...{ headHash: '0'.repeat(64), headBytes: 8, offset: 8, contentHash: 'xxh64:0000000000000000' },
      ...{ endsInLine: false, path: 'web.log', lastTimeMs: null, records: 1, rejected: 1 },
    };
    const sessions = [await begun(store, 0), await begun(store, 1)];
    await sessions[0]!.commit({ ...ending, checkpoints: [checkpoint] });
    const second = sessions[1]!.commit({ ...ending, checkpoints: [checkpoint] });
    await expect(second).rejects.toMatchObject({ code: 'conflict' });
    await sessions[1]!.abort();
    expect(await directory.list('web/rejected')).toHaveLength(1);
    expect(await store.verify()).toMatchObject({ damages: [], unnamedFiles: [], records: 1 });
    await archive.close();
  });

  it('of a load that was stored nevertheless keeps its files, also if other commits followed', async () => {
    let seen = 0;
    for (let step = 1, hasFailed = true; hasFailed; step++) {
      const directory = new MemoryDirectory();
      const archive = await openOn(directory);
      const store = await archive.agent('web', schema);
      const session = await begun(store, 0);
      directory.setFaults({ failAtOperation: directory.mutations + step });
      hasFailed = false;
      await session.commit(ending).catch(() => (hasFailed = true));
      directory.setFaults({});
      // If the load had not reached its publication, no other commit is made before the load is aborted.
      let isAppended = false;
      const appending = append(store, [row(1)], 'live').then(() => (isAppended = true));
      for (let turn = 0; turn < turnsOfAppend; turn++) await setImmediate();
      const isStored = hasFailed && isAppended && (await messages(store)).includes('line 0');
      if (isStored) seen++;
      await session.abort();
      await appending;
      const expected = isStored || !hasFailed ? ['line 0', 'line 1'] : ['line 1'];
      expect([step, await messages(store)]).toEqual([step, expected]);
      expect([step, await store.verify()]).toMatchObject([step, { damages: [] }]);
      await archive.close();
      const again = await openOn(directory);
      expect([step, await messages(await again.agent('web', schema))]).toEqual([step, expected]);
      await again.close();
    }
    expect(seen).toBeGreaterThan(0);
  });
});

it('a load that has ended keeps its rejected lines after any crash', async () => {
  const directory = new MemoryDirectory();
  const store = await (await openOn(directory)).agent('web', schema);
  const session = await begun(store, 0);
  await session.commit(ending);
  const left = await openOn(directory.crash('lost'));
  const again = await left.agent('web', schema);
  expect(await again.verify()).toMatchObject({ damages: [], unnamedFiles: [], records: 1 });
  const [entry] = await again.rejectedFiles();
  for await (const lines of again.rejectedLines(entry!))
    expect(lines).toMatchObject([{ reason: 'no match' }]);
  await left.close();
});

it('a record whose time cannot be read is placed with the record before it, also across batches of a load', async () => {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const session = await store.beginLoad();
  const then = noon - 30 * 3_600_000;
  await session.append(batchFromRows(schema, [[BigInt(then), 1n, null, 'line 0']]), 0);
  await session.append(batchFromRows(schema, [[null, 1n, null, 'line 1']]), 0);
  await session.commit(ending);
  const hour = Math.floor(then / 3_600_000)
    .toString(16)
    .padStart(6, '0');
  expect((await cursors(store)).map((cursor) => cursor.slice(0, 6))).toEqual([hour, hour]);
  await archive.close();
});

it('a load that a crash interrupted leaves no file once a process writes again', async () => {
  const directory = new MemoryDirectory();
  const store = await (await openOn(directory)).agent('web', schema);
  await append(store, [row(0)], 'live');
  await begun(store, 1);
  const crashed = directory.crash('kept');
  expect(await crashed.list('web/building')).toHaveLength(1);
  const left = await openOn(crashed);
  expect(await messages(await left.agent('web', schema))).toEqual(['line 0']);
  expect(await crashed.list('web/building')).toEqual([]);
  await left.close();
});

describe('positions', () => {
  it('do not change when hot records are sealed, although loaded records lie between them', async () => {
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('web', schema);
    await append(store, [row(0), row(1)], 'live');
    await load(store, [row(2), row(3)]);
    await append(store, [row(4), row(5)], 'live');
    const before = await answer(store);
    await store.compact();
    expect((await store.stats()).hotRecords).toBe(0);
    expect(await answer(store)).toBe(before);
    await archive.close();
  });

  it('of an hour that has no room for a load are refused before any position is given', async () => {
    const directory = new MemoryDirectory();
    const first = await openOn(directory);
    await load(await first.agent('web', schema), [row(0)]);
    await first.close();
    const manifest = (await readNewestManifest(directory, 'web'))!;
    const [[partition]] = manifest.nextOrdinals as [[number, number]];
    const nextOrdinals = [[partition, ordinalMax]] as const;
    await publishManifest(directory, 'web', { ...manifest, number: manifest.number + 1, nextOrdinals });
    const archive = await openOn(directory);
    const store = await archive.agent('web', schema);
    await expect(load(store, [row(1), row(2)])).rejects.toMatchObject({ code: 'limit' });
    await load(store, [row(3)]);
    expect(await messages(store)).toEqual(['line 0', 'line 3']);
    await archive.close();
  });
});

it('hot records keep their fields when the agent gets other fields, also after a crash', async () => {
  const directory = new MemoryDirectory();
  const archive = await openOn(directory);
  await append(await archive.agent('web', schema), [row(0)], 'live');
  const [time, , took, message] = schema.fields;
  const other = makeSchema([time!, message!, { name: 'host', type: 'string' }, took!]);
  const store = await archive.redefine('web', other, undefined);
  await append(store, [[BigInt(noon), 'line 1', 'a', null]], 'live');
  const expected = [
    { message: 'line 0', host: null },
    { message: 'line 1', host: 'a' },
  ];
  const records = async (of: AgentStore): Promise<unknown[]> =>
    (await answer(of))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);
  expect(await records(store)).toMatchObject(expected);
  const left = await openOn(directory.crash('kept'));
  expect(await records(await left.agent('web', other))).toMatchObject(expected);
  await left.close();
});
