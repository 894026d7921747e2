import type { Checkpoint } from '../../../engine/index.js';
import type { CollectLog } from './collect-log.js';
import type { FollowedFile } from './followed-file.js';
import type { Identity } from './log-state.js';

/** Warns where a file is recognised, but not all of its content is where it was. */
export function reportIdentity(log: CollectLog, agent: string, file: FollowedFile, identity: Identity): void {
  if (identity.kind !== 'follow') return;
  const { cutBack, isRewritten } = identity;
  const bytes = file.state.status.sizeBytes;
  if (cutBack !== undefined) {
    const { known, offset, isDated } = cutBack;
    const since = isDated
      ? 'where its lines become newer than the stored ones'
      : 'at its end, because its lines have no time that shows which are new';
    log.warn(
      { agent, file: file.path, bytes, stored: known.offset, from: offset },
      `a log has lost its end, of which some was stored, as in a power cut: ${known.offset} bytes are stored, it now has ${bytes}; ` +
        `reading continues at byte ${offset}, ${since}`,
    );
  }
  if (isRewritten === true)
    log.warn(
      { agent, file: file.path, bytes },
      'a log begins before the last line that was stored under its name, but that line was not found in it, as when its beginning ' +
        `was removed: all its ${bytes} bytes are read, and lines of it may be stored twice`,
    );
}

/**
 * Warns about logs that links led to, of which nothing was found beside the links' targets. Only of the log that a link led
 * to last, and only once: if the file that it leads to now was never read.
 */
export function reportLost(
  log: CollectLog,
  agent: string,
  files: readonly FollowedFile[],
  lost: readonly Checkpoint[],
  checkpoints: readonly Checkpoint[],
): void {
  for (const { path, target = path, offset, lastTimeMs } of lost) {
    const now = files.find((file) => file.path === path && file.state.target !== null);
    const isLast = checkpoints.every(
      (one) => one.path !== path || (one.lastTimeMs ?? 0) <= (lastTimeMs ?? 0),
    );
    if (now === undefined || !isLast || checkpoints.some(({ inode }) => inode === now.inode)) continue;
    log.warn(
      { agent, file: path, target, stored: offset },
      `the log that ${path} led to, ${target}, is gone, and is not beside it under a rotated name: ${offset} bytes of it are ` +
        'stored, and what was written to it after these is lost',
    );
  }
}
