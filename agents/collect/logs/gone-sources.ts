import { type AgentStore, type Checkpoint, checkpointKey } from '../../../engine/index.js';
import type { CollectLog } from './collect-log.js';
import { findStart, forgetSources } from './follow-start.js';
import type { FollowedFile } from './followed-file.js';

/** How often sources are looked for that went long ago. */
const forgetEveryMs = 3_600_000;

/** A source that has gone is known for so long after its last record… */
const knownMs = 90 * 24 * 3_600_000;

/** …and after it was seen to be gone, since the records of a log may be old when it comes. */
const absentMs = 24 * 3_600_000;

/** Of those that have gone so many are known: a checkpoint takes half a kilobyte of every manifest. */
const goneSourcesMax = 10_000;

/** Sources that are forgotten in one commit. */
const forgottenMax = 1000;

export interface GoneSourcesOptions {
  readonly store: AgentStore;
  readonly now: () => number;
  readonly log: CollectLog;
}

/** Forgets sources whose files have gone from the folder long ago, or are too many: their checkpoints would be kept for ever. */
export class GoneSources {
  /** Since when sources are known to be gone, by their keys. */
  private since = new Map<string, number>();
  private nextMs = 0;

  constructor(
    private readonly agent: string,
    private readonly options: GoneSourcesOptions,
  ) {}

  /**
   * Forgets what can be forgotten, now and then; not while it is unknown what some file is, nor when nothing is in the folder,
   * as if it were not mounted. `byInode` is all that is there. Throws what the storage throws.
   */
  async forget(byInode: ReadonlyMap<string, FollowedFile>): Promise<void> {
    const { store, now, log } = this.options;
    const nowMs = now();
    if (nowMs < this.nextMs && nowMs > this.nextMs - forgetEveryMs) return;
    const files = [...byInode.values()];
    const isKnown = files.every(({ kind, state }) => kind !== 'new' && state.failure === null);
    if (!isKnown || files.every(({ gone }) => gone)) return;
    this.nextMs = nowMs + forgetEveryMs;
    const { checkpoints } = await store.sources();
    const inUse = new Set(files.flatMap(({ position }) => position?.key ?? []));
    const gone = checkpoints
      .filter(isCollected)
      .map((checkpoint) => ({ checkpoint, key: checkpointKey(checkpoint) }))
      .filter(({ checkpoint, key }) => !byInode.has(checkpoint.inode!) && !inUse.has(key));
    const sources = this.oldest(gone, nowMs);
    if (sources.length === 0) return;
    await forgetSources(store, findStart(checkpoints)!, sources);
    log.info({ agent: this.agent, sources: sources.length }, 'logs that went long ago are no longer known');
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

/** What `load` has stored stays known: it may be asked to load it again, from anywhere. */
function isCollected({ headBytes, contentHash, inode }: Checkpoint): boolean {
  return headBytes > 0 && contentHash === null && inode !== undefined;
}
