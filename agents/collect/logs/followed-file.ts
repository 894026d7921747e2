import type { CompressedSource } from './compressed-source.js';
import type { FileStatus, LogHandle } from './log-files.js';
import type { LogName } from './log-names.js';
import type { HandleHolder } from './open-files.js';
import type { SourcePosition } from './source-position.js';

/** A failed file is tried again after this time, then after twice as long each time, up to the longest. */
const retryFirstMs = 1000;
const retryLongestMs = 60_000;

const nothing = new Uint8Array(0);

/**
 * What became of a file that was looked at: `new` not yet, `follow` it is read, `packed` it is compressed and read,
 * `done` all of it is stored, `history` it is older than the agent, `waiting` what it is can't be told yet.
 */
export type FileRole = 'new' | 'follow' | 'packed' | 'done' | 'history' | 'waiting';

/** One file of an agent: known by its device and number, under whatever name. */
export class FollowedFile implements HandleHolder {
  handle: LogHandle | null = null;
  busy = false;
  role: FileRole = 'new';
  /** Set while the role is `follow` or `packed`. */
  position: SourcePosition | null = null;
  packed: CompressedSource | null = null;
  /** No name leads to it any more, since then. */
  goneSinceMs: number | null = null;
  /** There may be something to read. */
  dirty = true;
  /** Bytes behind the position that make no whole record yet, since when they are all there is, and whether they end inside a line. */
  partialBytes = 0;
  partialSinceMs = 0;
  partialEndsInLine = false;
  /** How far a line without an end was looked through already. */
  scannedTo = 0;
  /** Since when its size and time have been what they are. */
  unchangedSinceMs: number;
  /** The longest that it was ever seen. */
  seenBytes = 0;
  /** How long it was known to be when its content was last recognised: what it has beyond may be other content, in its place. */
  provenBytes = 0;
  /** What its content begins with, as far as it was seen, stored or not; at most `headBytesMax`. */
  begun: Uint8Array = nothing;
  /** When its name changed last. */
  movedMs = 0;
  /** Since when nothing was added. */
  grownMs: number;
  /** What was there of its content when the agent was followed first; 0 when none was, and once it was cut off. */
  thereBytes = 0;
  /** Something of it was stored by this process. */
  hasStored = false;
  /** The `asOf` of the sources by which its position was found. */
  asOf = 0;
  failure: string | null = null;
  private retryAtMs = 0;
  private retryMs = 0;

  constructor(
    readonly inode: string,
    public path: string,
    public name: LogName,
    public status: FileStatus,
    nowMs: number,
  ) {
    this.unchangedSinceMs = nowMs;
    this.grownMs = nowMs;
    this.seenBytes = status.sizeBytes;
  }

  get gone(): boolean {
    return this.goneSinceMs !== null;
  }

  /** The name is that of a generation which rotation has put aside. */
  get rotated(): boolean {
    return this.name.base !== this.name.name;
  }

  /** Bytes that are there and not stored; of a compressed file it is not known. */
  get lagBytes(): number {
    if (this.role !== 'follow' || this.position === null) return 0;
    return Math.max(0, this.seenBytes - this.position.offset);
  }

  /** It was found under this name, as this. */
  see(path: string, name: LogName, status: FileStatus, nowMs: number): void {
    const { sizeBytes, modifiedMs } = this.status;
    const changed = status.sizeBytes !== sizeBytes || status.modifiedMs !== modifiedMs;
    if (changed) this.unchangedSinceMs = nowMs;
    const returned = this.goneSinceMs !== null;
    if (changed || returned || this.path !== path) this.dirty = true;
    if (this.path !== path) this.movedMs = nowMs;
    // What had nothing to give may be another content now.
    if ((changed || returned) && (this.role === 'done' || this.role === 'history')) this.role = 'new';
    this.path = path;
    this.name = name;
    this.status = status;
    this.seenBytes = Math.max(status.sizeBytes, this.seenBytes);
    this.goneSinceMs = null;
  }

  /** Since when it ends inside a record, under the name that it has now. */
  get silentSinceMs(): number {
    return Math.max(this.partialSinceMs, this.movedMs, this.goneSinceMs ?? 0);
  }

  /** Whether it may be tried now. */
  due(nowMs: number): boolean {
    return nowMs >= this.retryAtMs || nowMs < this.retryAtMs - retryLongestMs;
  }

  /** It could not be read. Returns whether that is news. */
  fail(message: string, nowMs: number): boolean {
    this.retryMs = Math.min(retryLongestMs, Math.max(retryFirstMs, this.retryMs * 2));
    this.retryAtMs = nowMs + this.retryMs;
    const news = this.failure !== message;
    this.failure = message;
    return news;
  }

  /** It could be read. Returns what was wrong with it before, or null. */
  succeed(): string | null {
    const { failure } = this;
    this.failure = null;
    this.retryMs = 0;
    this.retryAtMs = 0;
    return failure;
  }

  /** Has it looked at anew: what it is, and where it is to be read on. */
  async forget(): Promise<void> {
    const { packed } = this;
    this.role = 'new';
    this.position = null;
    this.packed = null;
    this.begun = nothing;
    this.partialBytes = 0;
    this.scannedTo = 0;
    this.dirty = true;
    await packed?.close();
  }
}
