import { type Checkpoint, checkpointKey } from '../../../engine/index.js';
import type { CollectTally } from './collect-counts.js';
import type { CollectLog } from './collect-log.js';
import type { TruncatedSource } from './file-identity.js';
import type { FollowedFile } from './followed-file.js';
import type { FollowedContent } from './log-state.js';

/** Limit on remembered truncated contents. */
const rememberedMax = 10_000;

/**
 * Counts content that was truncated while it was followed, and recognises copies of it that are read later: these recover
 * what was not read.
 */
export class Truncations {
  /** Truncated contents, the oldest first. */
  readonly sources: TruncatedSource[] = [];

  constructor(
    private readonly agent: string,
    private readonly tally: CollectTally,
    private readonly log: CollectLog,
  ) {}

  /** Counts the truncation of a followed file, whose state still describes the old content. */
  count(file: FollowedFile): void {
    const content = file.followed!;
    const { offset } = content.position;
    const unreadBytes = Math.max(0, lengthBefore(content, file.state.status.sizeBytes) - offset);
    this.tally.truncations++;
    this.tally.truncatedBytes += unreadBytes;
    this.remember(file, unreadBytes);
    const facts = { agent: this.agent, file: file.path, offset, unread: unreadBytes };
    if (unreadBytes > 0) this.log.warn(facts, 'a log was truncated before all of it was read');
    else this.log.info(facts, 'a log was truncated and starts again');
  }

  /** Remembers the old content of a file, so that a copy of it is recognised. */
  remember(file: FollowedFile, unreadBytes: number): void {
    const { position, begun } = file.followed!;
    this.sources.push({ base: file.name.base, key: position.key, position, begun, unreadBytes });
    if (this.sources.length > rememberedMax) this.sources.shift();
  }

  /**
   * Corrects the count of lost bytes when a file is read that begins with `head`, from a checkpoint or from its beginning.
   * If it is a copy of truncated content, it gives the bytes that had not been read before the truncation.
   */
  recover(file: FollowedFile, known: Checkpoint | null, head: Uint8Array): void {
    if (known?.inode === file.inode) return;
    const source = known === null ? this.unstored(file, head) : this.stored(known);
    if (source === undefined) return;
    const offset = known?.offset ?? 0;
    const there = file.kind === 'packed' ? source.unreadBytes : file.state.status.sizeBytes - offset;
    const recovered = Math.min(source.unreadBytes, there);
    source.unreadBytes -= recovered;
    this.tally.truncatedBytes -= recovered;
  }

  private stored(known: Checkpoint): TruncatedSource | undefined {
    return this.sources.find(({ key, unreadBytes }) => unreadBytes > 0 && key === checkpointKey(known));
  }

  /** Finds truncated content of which nothing was stored and whose first bytes a rotated generation of the log has. */
  private unstored({ name, rotated }: FollowedFile, head: Uint8Array): TruncatedSource | undefined {
    if (!rotated) return undefined;
    return this.sources.find(
      ({ base, key, begun, unreadBytes }) =>
        unreadBytes > 0 &&
        key === null &&
        base === name.base &&
        begun.length > 0 &&
        Buffer.compare(begun, head.subarray(0, begun.length)) === 0,
    );
  }
}

/**
 * Lower bound of the length of truncated content. If the file is now shorter than it was seen, the content had the seen
 * length. If it is not, what was seen last may be newer content, so only the verified length counts.
 */
function lengthBefore({ seenBytes, provenBytes }: FollowedContent, sizeBytes: number): number {
  return sizeBytes < seenBytes ? seenBytes : provenBytes;
}
