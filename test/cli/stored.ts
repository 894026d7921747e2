import { join } from 'node:path';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { openArchive, WorkerPool } from '../../engine/index.js';
import { answer } from '../engine/store/memory-archive.js';
import type { StoreStats } from '../../engine/maintenance/stats.js';

const noThreads = new WorkerPool(0);

/** Opens a store for reading in this process, because starting a process takes longer than all the reads. */
export async function readStore<T>(
  folder: string,
  agent: string,
  read: (store: AgentStore) => Promise<T>,
): Promise<T> {
  const archive = await openArchive(join(folder, 'data/store'), {
    mode: 'read',
    role: 'query',
    workers: noThreads,
  });
  try {
    return await read(await archive.agent(agent));
  } finally {
    await archive.close();
  }
}

/** Every record of an agent in order of position, as JSON Lines. */
export function storedLines(folder: string, agent: string): Promise<string> {
  return readStore(folder, agent, (store) => answer(store));
}

export function storedStats(folder: string, agent: string): Promise<StoreStats> {
  return readStore(folder, agent, (store) => store.stats());
}
