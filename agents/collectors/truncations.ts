import { checkpointKey } from '../../engine/storage/committed-values.js';
import type { Checkpoint } from '../../engine/storage/manifest.js';
import type { CollectTally } from './collect-counts.js';
import type { CollectLog } from './collect-log.js';
import type { TruncatedSource } from './file-identity.js';
import type { FollowedFile } from './followed-file.js';

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

  /** The content of a file that was read is no longer there, and the file has a position still. */
  count(file: FollowedFile): void {
    const { offset } = file.position!;
    const unreadBytes = Math.max(0, file.seenBytes - offset);
    this.tally.truncations++;
    this.tally.truncatedBytes += unreadBytes;
    this.remember(file, unreadBytes);
    const facts = { agent: this.agent, file: file.path, offset, unread: unreadBytes };
    if (unreadBytes > 0) this.log.warn(facts, 'a log was cut off before all of it was read');
    else this.log.info(facts, 'a log begins anew');
  }

  /** Keeps in mind what a copy would be known by. */
  remember({ name, position }: FollowedFile, unreadBytes: number): void {
    this.sources.push({ base: name.base, key: position!.key, position: position!, unreadBytes });
    if (this.sources.length > rememberedMax) this.sources.shift();
  }

  /** A file was recognised by a checkpoint. Where it is a copy, it gives what was cut off before it was read. */
  recover(file: FollowedFile, known: Checkpoint | null): void {
    if (known === null) return;
    const source = this.sources.find(({ key }) => key === checkpointKey(known));
    if (source === undefined || source.unreadBytes === 0 || known.inode === file.inode) return;
    const there = file.role === 'packed' ? source.unreadBytes : file.status.sizeBytes - known.offset;
    const recovered = Math.min(source.unreadBytes, there);
    source.unreadBytes -= recovered;
    this.tally.truncatedBytes -= recovered;
  }
}
