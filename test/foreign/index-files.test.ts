import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import type { IndexingProgress } from '../../engine/store/attached/index-files.js';
import { makeSchema } from '../../engine/core/schema.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { writeParquet } from './write-parquet.js';

const files = 7;
const nowMs = Date.UTC(2025, 0, 3);
const schema = makeSchema([
  { name: 'time', type: 'time', attached: { column: '@timestamp', unit: 'ms' } },
  { name: 'message', type: 'string' },
]);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'logstrata-index-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

interface Attached {
  readonly archive: Archive;
  readonly store: AgentStore;
  readonly directory: MemoryDirectory;
  /** The newest file is last. */
  readonly paths: readonly string[];
}

/** Files of several row groups each. */
async function attached(name: string, workers?: WorkerPool): Promise<Attached> {
  const paths: string[] = [];
  for (let file = 0; file < files; file++) {
    const path = join(folder, `${name}-${file}.parquet`);
    const time = (row: number) => BigInt(nowMs - (files - file) * 3_600_000 + row);
    const rows = Array.from({ length: 300 }, (_, row) => [time(row), `message ${file} ${row}`]);
    await writeParquet(path, schema, rows, { rowGroupRows: 100, pageBytes: 1000 });
    paths.push(path);
  }
  const directory = new MemoryDirectory();
  const archive = await openOn(directory, () => nowMs, workers);
  const store = await archive.agent('web', schema);
  const adds = paths.map((path) => ({ path, format: 'parquet' as const, constants: {} }));
  expect((await store.attach({ adds, moves: [], removes: [] })).problems).toEqual([]);
  return { archive, store, directory, paths };
}

async function indexedPaths(store: AgentStore): Promise<string[]> {
  return (await store.attachedFiles()).flatMap(({ path, index }) => (index === undefined ? [] : [path]));
}

describe('indexing files', () => {
  it('reports its progress on the files that it can index, the newest first', async () => {
    const workers = new WorkerPool(2);
    const { archive, store, paths } = await attached('progress', workers);
    const told: IndexingProgress[] = [];
    await truncate(paths[3]!, 1000);
    const { indexed, problems, left } = await store.indexAttached({
      onProgress: (progress) => told.push(progress),
    });
    expect(problems.map(({ path }) => path)).toEqual([paths[3]]);
    expect(indexed.map(({ path }) => path).sort()).toEqual(paths.filter((path) => path !== paths[3]));
    expect(left).toBe(0);
    expect([told[0]!.path, told[0]!.bytesDone]).toEqual([paths.at(-1), 0]);
    told.slice(1).forEach(({ filesDone, bytesDone }, i) => {
      expect(filesDone).toBeGreaterThanOrEqual(told[i]!.filesDone);
      expect(bytesDone).toBeGreaterThanOrEqual(told[i]!.bytesDone);
    });
    const last = told.at(-1)!;
    expect(last.bytesDone).toBeLessThanOrEqual(last.bytes);
    expect(last.filesDone).toBeGreaterThanOrEqual(files - 2);
    await archive.close();
    await workers.close();
  });

  it('that is stopped keeps the finished files, and continues with the others', async () => {
    const { archive, store, directory } = await attached('stopped');
    const stop = new AbortController();
    const reason = new Error('enough');
    const indexing = store.indexAttached({
      signal: stop.signal,
      onProgress: ({ filesDone }) => {
        if (filesDone >= 3) stop.abort(reason);
      },
    });
    await expect(indexing).rejects.toThrow(reason);
    const done = await indexedPaths(store);
    expect(done.length).toBeGreaterThanOrEqual(3);
    expect(done.length).toBeLessThan(files);
    // Indexes that were begun are gone: only indexes that the archive names are left.
    const { indexed } = await store.indexAttached();
    expect(indexed).toHaveLength(files - done.length);
    const names = (await directory.list('web/attached')).filter((name) => name.endsWith('.index'));
    expect(names).toHaveLength(files);
    await archive.close();
  });
});
