import { describe, expect, it } from 'vitest';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { Archive } from '../../../engine/archive/archive.js';
import { batchFromRows } from '../../model/rows.js';
import type { Checkpoint } from '../../../engine/store/manifest/manifest.js';
import type { ChannelOperations } from '../../../engine/store/writer/writer-channel.js';
import type { WriterLink } from '../../../engine/store/writer/writer-link.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import type { Value } from '../../model/dataset.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import {
  answer,
  append,
  load,
  lockOfNoOther,
  noExtras,
  noon,
  openOn,
  openToRead,
  schema,
} from './memory-archive.js';

const row = (n: number): Value[] => [BigInt(noon - 60_000 + n), 1n, null, `line ${n}`];

async function messages(store: AgentStore): Promise<unknown[]> {
  const lines = (await answer(store)).split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { message: string }).message).sort();
}

const checkpoint: Checkpoint = {
  headHash: '0'.repeat(64),
  headBytes: 8,
  offset: 8,
  contentHash: null,
  tailHash: '1'.repeat(64),
  inode: '1:1',
  endsInLine: false,
  path: 'web.log',
  lastTimeMs: null,
  records: 1,
  rejected: 0,
};

/** Stores a record of a file for a loader that knew the sources as of `asOf`. */
async function appendAsOf(store: AgentStore, n: number, asOf: number): Promise<void> {
  const extras = { ...noExtras, checkpoints: [checkpoint], asOf };
  await store.append(batchFromRows(schema, [row(n)]), extras, 'live');
}

describe('an append of records from a file', () => {
  it('is refused if it relies on sources that were known before this writer began', async () => {
    const directory = new MemoryDirectory();
    const first = await openOn(directory);
    const { asOf } = await (await first.agent('web', schema)).sources();
    await load(await first.agent('web', schema), [row(0)]);
    await first.close();
    const second = await openOn(directory);
    const store = await second.agent('web', schema);
    await expect(appendAsOf(store, 1, asOf)).rejects.toMatchObject({ code: 'conflict' });
    await appendAsOf(store, 2, (await store.sources()).asOf);
    expect(await messages(store)).toEqual(['line 0', 'line 2']);
    await second.close();
  });
});

describe('a reader beside a writer', () => {
  it('shows one consistent state, although more is committed between its two reads', async () => {
    const directory = new MemoryDirectory();
    const noThreads = new WorkerPool(0);
    let operations: ChannelOperations = {};
    const lock = { ...lockOfNoOther(), serve: (served: ChannelOperations) => void (operations = served) };
    const settings = { role: 'test', now: () => noon, removalDelayMs: 0, workers: noThreads };
    const writer = new Archive(
      directory,
      { ...settings, mode: 'write' },
      { lock: () => Promise.resolve(lock), connect: () => Promise.resolve(undefined) },
    );
    await writer.start();
    const store = await writer.agent('web', schema);
    await append(store, [row(0)], 'live');
    let goesOn = false;
    const link: WriterLink = {
      holder: { role: 'test', pid: 1 },
      alive: true,
      close: () => Promise.resolve(),
      request: async (operation, args) => {
        const told = await operations[operation]!(args, new Uint8Array(0), undefined as never);
        if (goesOn) {
          goesOn = false;
          await append(store, [row(2)], 'live');
          await load(store, [row(3)]);
        }
        return told;
      },
    };
    const reader = new Archive(
      directory,
      { ...settings, mode: 'read' },
      { lock: () => Promise.resolve(undefined), connect: () => Promise.resolve(link) },
    );
    await reader.start();
    const shown = await reader.agent('web');
    await load(store, [row(1)]);
    goesOn = true;
    expect(await messages(shown)).toEqual(['line 0', 'line 1', 'line 2', 'line 3']);
    expect(goesOn).toBe(false);
    await reader.close();
    await writer.close();
  });

  it('reports no loss if the first records arrive while it looks for them', async () => {
    class WatchedDirectory extends MemoryDirectory {
      behindList: ((path: string) => Promise<void>) | undefined;
      override async list(path: string): Promise<string[]> {
        const names = await super.list(path);
        await this.behindList?.(path);
        return names;
      }
    }
    const directory = new WatchedDirectory();
    const writer = await openOn(directory);
    const reader = await openToRead(directory);
    await directory.makeDirectory('web');
    const shown = await reader.agent('web', schema);
    directory.behindList = async (path) => {
      if (path !== 'web') return;
      directory.behindList = undefined;
      await append(await writer.agent('web', schema), [row(0)], 'live');
    };
    expect(await messages(shown)).toEqual(['line 0']);
    expect(directory.behindList).toBeUndefined();
    await reader.close();
    await writer.close();
  });
});
