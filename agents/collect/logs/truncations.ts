import { type Checkpoint, checkpointKey } from '../../../engine/index.js';
import type { CollectTally } from './collect-counts.js';
import type { CollectLog } from './collect-log.js';
import type { TruncatedSource } from './file-identity.js';
import type { FollowedFile } from './followed-file.js';
import type { FollowedContent } from './log-state.js';

/** What is kept in mind of content that was cut off, at most. */
const rememberedMax = 10_000;

/** Content that was cut off while it was followed: it is counted, and a copy that comes later gives what was not read. */
export class Truncations {
  readonly sources: TruncatedSource[] = [];

  constructor(
    private readonly agent: string,
    private readonly tally: CollectTally,
    private readonly log: CollectLog,
  ) {}

  /** The content of a followed file is no longer there, and its state still says what it was. */
  count(file: FollowedFile): void {
    const content = file.followed!;
    const { offset } = content.position;
    const unreadBytes = Math.max(0, lengthBefore(content, file.state.status.sizeBytes) - offset);
    this.tally.truncations++;
    this.tally.truncatedBytes += unreadBytes;
    this.remember(file, unreadBytes);
    const facts = { agent: this.agent, file: file.path, offset, unread: unreadBytes };
    if (unreadBytes > 0) this.log.warn(facts, 'a log was cut off before all of it was read');
    else this.log.info(facts, 'a log begins anew');
  }

  /** Keeps in mind what a copy would be known by. */
  remember(file: FollowedFile, unreadBytes: number): void {
    const { position, begun } = file.followed!;
    this.sources.push({ base: file.name.base, key: position.key, position, begun, unreadBytes });
    if (this.sources.length > rememberedMax) this.sources.shift();
  }

  /**
   * A file that begins with `head` is read, behind a checkpoint or from its beginning. Where it is a copy, it gives what was cut off
   * before it was read.
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

  /** A generation of the log that begins as content did of which nothing was stored. */
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
 * How long the content was at least that was cut off. A file that is shorter than it was seen was as long as that; the size of one
 * that is not may be what has come since.
 */
function lengthBefore({ seenBytes, provenBytes }: FollowedContent, sizeBytes: number): number {
  return sizeBytes < seenBytes ? seenBytes : provenBytes;
}
