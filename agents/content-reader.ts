import type { Checkpoint } from '../engine/storage/manifest.js';
import { PeekedSource, type ByteSource } from './byte-source.js';
import { hashLike, isXxh64, Xxh64Hash, type ContentHash } from './content-hash.js';

/** Bytes before an offset by which content is recognised that was not hashed as a whole: a few lines, with their times. */
export const tailBytesMax = 512;

/** The last bytes of content that ended with `tail` and goes on with `bytes`. A copy. */
export function contentTail(tail: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length >= tailBytesMax) return bytes.slice(bytes.length - tailBytesMax);
  const kept = tail.subarray(Math.max(0, tail.length + bytes.length - tailBytesMax));
  const result = new Uint8Array(kept.length + bytes.length);
  result.set(kept);
  result.set(bytes, kept.length);
  return result;
}

/**
 * The content of a source as identity sees it: the beginning can be looked at, a part can be passed over, and the hash of
 * what was passed over or read is at hand. Whoever reads by `next` says to `hashed` what became part of the archive.
 */
export class ContentReader {
  private readonly source: PeekedSource;
  private rest: Uint8Array | null = null;
  private readonly hash = new Xxh64Hash();
  /** As earlier versions hashed, while it is needed; … */
  private older: ContentHash | null = null;
  /** … which is up to this offset. */
  private olderTo = 0;
  private position = 0;
  private tailBytes: Uint8Array = new Uint8Array(0);

  constructor(source: ByteSource) {
    this.source = new PeekedSource(source);
  }

  /** Path of the source, for messages. */
  get path(): string {
    return this.source.path;
  }

  /** Content offset up to which was hashed. */
  get offset(): number {
    return this.position;
  }

  /** Bytes of the file that were taken, before decompression: the measure of progress. */
  get bytesTaken(): number {
    return this.source.bytesTaken;
  }

  /** The first bytes of the content, at most `count`. Only before anything else was read. */
  async head(count: number): Promise<Uint8Array> {
    return (await this.source.peek(count)).slice();
  }

  /** Has the content hashed as those checkpoints want it that it will be compared with. Only before anything was read. */
  prepareFor(checkpoints: readonly Checkpoint[]): void {
    for (const { contentHash, offset } of checkpoints) {
      if (contentHash === null || isXxh64(contentHash)) continue;
      this.older ??= hashLike(contentHash);
      this.olderTo = Math.max(this.olderTo, offset);
    }
  }

  /** Passes over the content up to `offset`, hashing it. Returns the offset reached: less where the content ends. */
  async skipTo(offset: number, onPiece: () => void): Promise<number> {
    while (this.position < offset) {
      const piece = await this.next();
      if (piece === null) break;
      const taken = Math.min(piece.length, offset - this.position);
      this.hashed(piece.subarray(0, taken));
      this.rest = taken < piece.length ? piece.subarray(taken) : null;
      onPiece();
    }
    return this.position;
  }

  /** The next piece of content; null at the end. Valid until the next call. */
  async next(): Promise<Uint8Array | null> {
    if (this.rest === null) return this.source.next();
    const piece = this.rest;
    this.rest = null;
    return piece;
  }

  /** As `next`, to where it is wanted; undefined where the source can't read so. */
  get nextInto(): ByteSource['nextInto'] {
    const inner = this.source.nextInto;
    if (inner === undefined) return undefined;
    return async (target) => {
      const { rest } = this;
      if (rest === null) return inner(target);
      const length = Math.min(rest.length, target.length);
      target.set(rest.subarray(0, length));
      this.rest = length < rest.length ? rest.subarray(length) : null;
      return length;
    };
  }

  /** Adds content to the hash, in order. */
  hashed(bytes: Uint8Array): void {
    this.hash.update(bytes);
    if (this.position < this.olderTo) this.older?.update(bytes);
    this.position += bytes.length;
    this.tailBytes = contentTail(this.tailBytes, bytes);
  }

  /** The hash of the content up to `offset`, as a checkpoint has it. */
  digest(): string {
    return this.hash.digest();
  }

  /** Whether a checkpoint's hash, for which this was prepared, is that of the content up to `offset`. */
  hasHash(contentHash: string): boolean {
    const hash = isXxh64(contentHash) ? this.hash : this.older;
    return contentHash === hash?.digest();
  }

  /** The last bytes before `offset`, at most `tailBytesMax`. */
  tail(): Uint8Array {
    return this.tailBytes;
  }
}
