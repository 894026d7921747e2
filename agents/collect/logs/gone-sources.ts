import { dirname } from 'node:path';
import { type AgentStore, type Checkpoint, checkpointKey, BatchBuilder } from '../../../engine/index.js';
import type { CollectLog } from './collect-log.js';
import type { LogFiles } from './log-files.js';
import type { FollowedFile } from './followed-file.js';

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

/** Interval at which long-gone sources are searched. */
const forgetEveryMs = 3_600_000;

/** A gone source is remembered for this long after its last record … */
const knownMs = 90 * 24 * 3_600_000;

/** … and for this long after it was found to be gone, because the records of a log may already be old when it is read. */
const absentMs = 24 * 3_600_000;

/** Limit on remembered gone sources: each has a checkpoint, which takes about a kilobyte of every manifest. */
const goneSourcesMax = 10_000;

/** Limit on the sources that one commit forgets. */
const forgottenMax = 1000;

/** Options of forgetting gone sources. */
export interface GoneSourcesOptions {
  readonly store: AgentStore;
  readonly files: LogFiles;
  readonly now: () => number;
  readonly log: CollectLog;
}

/** Forgets sources whose files are long gone from the folder, or exceed the limit. Otherwise their checkpoints would stay forever. */
export class GoneSources {
  /** By source key, since when the source is known to be gone. */
  private since = new Map<string, number>();
  private nextMs = 0;

  constructor(
    private readonly agent: string,
    private readonly options: GoneSourcesOptions,
  ) {}

  /**
   * Forgets what can be forgotten, at most once per `forgetEveryMs`. Does nothing while some file is not identified, or
   * while no file is present (the folder may not be mounted). `byInode` are all present files. Throws what the storage
   * throws.
   */
  async forget(byInode: ReadonlyMap<string, FollowedFile>): Promise<void> {
    const { store, now, log } = this.options;
    const nowMs = now();
    if (nowMs < this.nextMs && nowMs > this.nextMs - forgetEveryMs) return;
    const files = [...byInode.values()];
    const isKnown = files.every(({ kind, state }) => kind !== 'new' && state.failure === null);
    if (!isKnown || files.every(({ isGone }) => isGone)) return;
    this.nextMs = nowMs + forgetEveryMs;
    const { checkpoints } = await store.sources();
    const inUse = new Set(files.flatMap(({ position }) => position?.key ?? []));
    const gone = checkpoints
      .filter(isCollected)
      .map((checkpoint) => ({ checkpoint, key: checkpointKey(checkpoint) }))
      .filter(({ checkpoint, key }) => !byInode.has(checkpoint.inode!) && !inUse.has(key));
    const oldest = this.oldest(gone, nowMs);
    const isKept = await Promise.all(oldest.map(({ target }) => this.mayBeThere(target)));
    const sources = oldest.filter((_, i) => !isKept[i]);
    if (sources.length === 0) return;
    await forgetSources(store, findStart(checkpoints)!, sources);
    log.info({ agent: this.agent, sources: sources.length }, 'logs removed long ago were forgotten');
  }

  /** Whether a log that a link led to may still be beside the link's target, under a rotated name: it would be stored again. */
  private async mayBeThere(target: string | undefined): Promise<boolean> {
    if (target === undefined) return false;
    return this.options.files.list(dirname(target)).then(
      () => true,
      () => false,
    );
  }

  private oldest(gone: { checkpoint: Checkpoint; key: string }[], nowMs: number): Checkpoint[] {
    const since = new Map(gone.map(({ key }) => [key, this.since.get(key) ?? nowMs]));
    this.since = since;
    const isOld = (key: string, lastTimeMs: number | null): boolean =>
      nowMs - since.get(key)! >= absentMs && nowMs - (lastTimeMs ?? nowMs) > knownMs;
    return gone
      .sort((a, b) => (b.checkpoint.lastTimeMs ?? 0) - (a.checkpoint.lastTimeMs ?? 0))
      .filter(({ key, checkpoint }, i) => i >= goneSourcesMax || isOld(key, checkpoint.lastTimeMs))
      .slice(-forgottenMax)
      .map(({ checkpoint }) => checkpoint);
  }
}

/** Excludes sources that `load` has stored: they stay known, because the same content may be loaded again from any place. */
function isCollected({ headBytes, contentHash, inode }: Checkpoint): boolean {
  return headBytes > 0 && contentHash === null && inode !== undefined;
}
