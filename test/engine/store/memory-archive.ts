import type { AgentStore } from '../../../engine/archive/agent-store.js';
import type { BackupFolder } from '../../../engine/archive/backup-folder.js';
import { Archive } from '../../../engine/archive/archive.js';
import type { OpenOptions } from '../../../engine/archive/open-options.js';
import type { CommitExtras } from '../../../engine/store/manifest/commit.js';
import type { Directory } from '../../../engine/store/disk/directory.js';
import type { WriterLock } from '../../../engine/store/writer/writer-link.js';
import { batchFromRows } from '../../model/rows.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { WorkerPool } from '../../../engine/workers/worker-pool.js';
import type { Query } from '../../../engine/scan/query.js';
import type { Value } from '../../model/dataset.js';

export const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'took', type: 'float' },
  { name: 'message', type: 'string' },
]);

/** 2026-11-20 12:00:00 UTC. */
export const noon = Date.UTC(2026, 10, 20, 12);

const noThreads = new WorkerPool(0);

/** The lock of a directory in memory, which no other process can want. */
export function lockOfNoOther(onRelease: () => void = () => {}): WriterLock {
  return {
    serve: () => {},
    stopServing: () => Promise.resolve(),
    isHeld: () => Promise.resolve(true),
    release: () => Promise.resolve(onRelease()),
  };
}

/** An archive on any directory, opened as its only writer. `onRelease` is called when it releases its lock. */
export async function openOn(
  directory: Directory,
  now: () => number = () => noon,
  workers: WorkerPool = noThreads,
  options: Partial<OpenOptions> = {},
  onRelease: () => void = () => {},
): Promise<Archive> {
  const archive = new Archive(
    directory,
    { mode: 'write', role: 'test', now, removalDelayMs: 0, workers, ...options },
    {
      lock: () => Promise.resolve(lockOfNoOther(onRelease)),
      connect: () => Promise.resolve(undefined),
    },
  );
  await archive.start();
  return archive;
}

/** An archive that compacts one step whenever `compactNext` is called. */
export function openCompacting(directory: Directory, now: () => number = () => noon): Promise<Archive> {
  return openOn(directory, now, noThreads, { background: { threads: 0 } });
}

/** An empty folder in memory for a copy. */
export function backupFolderOn(directory: Directory): BackupFolder {
  return { directory, agents: () => directory.list(''), close: () => Promise.resolve() };
}

/** An archive in a process that only reads, without a writer. */
export async function openToRead(directory: Directory): Promise<Archive> {
  const archive = new Archive(
    directory,
    { mode: 'read', role: 'test', now: () => noon },
    { lock: () => Promise.resolve(undefined), connect: () => Promise.resolve(undefined) },
  );
  await archive.start();
  return archive;
}

export const noExtras: CommitExtras = {
  checkpoints: [],
  rejected: [],
  counters: { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 },
};

export async function append(
  store: AgentStore,
  rows: readonly (readonly Value[])[],
  placement: 'live' | 'load',
): Promise<void> {
  await store.append(batchFromRows(store.schema, rows), noExtras, placement);
}

/** Loads rows as one unit, in batches of `batchRows`. */
export async function load(
  store: AgentStore,
  rows: readonly (readonly Value[])[],
  batchRows = 1000,
): Promise<void> {
  const session = await store.beginLoad();
  try {
    for (let i = 0; i < rows.length; i += batchRows) {
      await session.append(batchFromRows(store.schema, rows.slice(i, i + batchRows)), 0);
    }
    await session.commit({ checkpoints: [], counters: noExtras.counters });
  } finally {
    await session.abort();
  }
}

export async function textOf(lines: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

export async function answer(store: AgentStore, query: Partial<Query> = {}): Promise<string> {
  return textOf((await store.scan({ limit: 1_000_000, predicates: [], ...query })).lines);
}
