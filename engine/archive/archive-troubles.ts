import { diskFreeBytesMin } from '../terms/limits.js';
import type { DiskSpace } from '../store/disk/directory.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { CommitTally } from '../store/writer/commit-tally.js';
import type { WriterLock } from '../store/writer/writer-link.js';

/** Something that keeps a process from answering, or storing, all that it should. */
export interface Trouble {
  /** Whose records it is about; undefined where it is those of all. */
  readonly agent?: string;
  /** A sentence for the operator. */
  readonly reason: string;
}

/** What is wrong with one agent. A disk that was full is no trouble any more once there is room on it, though nothing was stored since. */
export function agentTroubles(
  { agent, damage }: AgentState,
  tally: CommitTally | undefined,
  disk: DiskSpace | null,
): Trouble[] {
  if (damage !== undefined) return [{ agent, reason: `its records can't be read: ${damage.message}` }];
  const failure = tally?.failure;
  if (failure === undefined) return [];
  const wasFull = 'code' in failure && failure.code === 'disk_full';
  if (wasFull && disk !== null && disk.freeBytes >= diskFreeBytesMin) return [];
  return [{ agent, reason: `nothing can be stored: ${failure.message}` }];
}

/** That the disk is full, or nearly. */
export function diskTroubles(location: string, disk: DiskSpace | null): Trouble[] {
  if (disk === null || disk.freeBytes >= diskFreeBytesMin) return [];
  const reason = `the disk of ${location} is full: ${disk.freeBytes} bytes are free, but at least ${diskFreeBytesMin} are needed`;
  return [{ reason }];
}

/**
 * That nothing is to be stored because nobody holds the lock, or that another process can take it.
 *
 * @param lock is undefined where this process does not hold it
 * @param isLinked whether another process holds it, and takes what this one commits
 * @param whyNot why it could not be taken, as far as that has failed
 */
export async function lockTroubles(
  location: string,
  lock: WriterLock | undefined,
  isLinked: boolean,
  whyNot: string | undefined,
): Promise<Trouble[]> {
  if (lock === undefined)
    return isLinked || whyNot === undefined
      ? []
      : [{ reason: `no process writes to ${location}: ${whyNot}` }];
  if (await lock.isHeld()) return [];
  return [{ reason: `the lock on ${location} is lost because its files were removed. Restart the server` }];
}
