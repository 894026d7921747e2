import { type AgentStore, BatchBuilder, type Checkpoint, checkpointKey } from '../../../engine/index.js';

/** Head hash of the checkpoint that records since when an agent is followed. It is the only checkpoint without content. */
const firstStartHash = 'followed';

/** The checkpoint that records since when the agent is followed, which is its `lastTimeMs`; undefined where there is none. */
export function findStart(checkpoints: readonly Checkpoint[]): Checkpoint | undefined {
  return checkpoints.find(({ headBytes, headHash }) => headBytes === 0 && headHash === firstStartHash);
}

/** Records that an agent is followed from now on. Throws what the storage throws. */
export async function markStart(store: AgentStore, path: string, nowMs: number): Promise<void> {
  const start: Checkpoint = {
    headHash: firstStartHash,
    headBytes: 0,
    offset: 0,
    contentHash: null,
    endsInLine: false,
    path,
    lastTimeMs: nowMs,
    records: 0,
    rejected: 0,
  };
  await commitCheckpoints(store, [start]);
}

/**
 * Forgets sources for good: commits the start checkpoint as the successor of each of their checkpoints, which removes these.
 * Throws what the storage throws, `conflict` where one of the sources has grown meanwhile.
 */
export async function forgetSources(
  store: AgentStore,
  start: Checkpoint,
  sources: readonly Checkpoint[],
): Promise<void> {
  await commitCheckpoints(
    store,
    sources.map((source) => ({ ...start, continues: checkpointKey(source) })),
  );
}

async function commitCheckpoints(store: AgentStore, checkpoints: readonly Checkpoint[]): Promise<void> {
  const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
  const batch = new BatchBuilder(store.schema).finish();
  await store.append(batch, { checkpoints, rejected: [], counters }, 'live');
}
