import { ContentHash } from '../../engine/index.js';
import { PeekedSource, type ByteSource } from './byte-source.js';
import { grownSamples } from './content-samples.js';

/** Number of bytes before an offset by which content without a whole-content hash is recognised: a few lines, with their times. */
export const tailBytesMax = 512;

/** The last bytes of content that ended with `tail` and continues with `bytes`. A copy. */
export function contentTail(tail: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length >= tailBytesMax) return bytes.slice(bytes.length - tailBytesMax);
  const kept = tail.subarray(Math.max(0, tail.length + bytes.length - tailBytesMax));
  const result = new Uint8Array(kept.length + bytes.length);
  result.set(kept);
  result.set(bytes, kept.length);
  return result;
}

/**
 * Reads the content of a source so that it can be recognised: its beginning can be looked at, a part can be skipped, and the
 * hash of what was skipped or read is known. The caller of `next` reports by `hashed` the bytes that became part of the
 * archive.
 */
export class ContentReader {
  private readonly source: PeekedSource;
  private rest: Uint8Array | null = null;
  private readonly hash = new ContentHash();
  private position = 0;
  private tailBytes: Uint8Array = new Uint8Array(0);
  private sampled = '';
  /** Number of bytes that may still be returned. */
  private left = Infinity;

  constructor(source: ByteSource) {
    this.source = new PeekedSource(source);
  }

  /** Path of the source, for messages. */
  get path(): string {
    return this.source.path;
  }

  /** Content offset after the last byte that was hashed. */
  get offset(): number {
    return this.position;
  }

  /** Bytes of the file that were taken, before decompression; a measure of progress. */
  get bytesTaken(): number {
    return this.source.bytesTaken;
  }

  /** The first bytes of the content, at most `count`. Call it before anything else is read. */
  async head(count: number): Promise<Uint8Array> {
    return (await this.source.peek(count)).slice();
  }

  /** Skips the content up to `offset` and hashes it. Returns the offset reached, which is less where the content ends before. */
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

  /** Makes the content end at `offset`, which must not have been passed. All content that was returned must have been hashed. */
  endAt(offset: number): void {
    this.left = offset - this.position;
  }

  /** The next piece of content; null at the end. Valid until the next call. */
  async next(): Promise<Uint8Array | null> {
    if (this.left === 0) return null;
    const piece = this.rest ?? (await this.source.next());
    this.rest = null;
    const given = piece?.subarray(0, this.left) ?? null;
    this.left -= given?.length ?? 0;
    return given;
  }

  /** Like `next`, but reads into the caller's memory; undefined where the source does not support that. */
  get nextInto(): ByteSource['nextInto'] {
    const inner = this.source.nextInto;
    if (inner === undefined) return undefined;
    return async (target) => {
      const wanted = target.subarray(0, this.left);
      const length = this.rest === null ? await inner(wanted) : this.giveRest(this.rest, wanted);
      this.left -= length;
      return length;
    };
  }

  private giveRest(rest: Uint8Array, target: Uint8Array): number {
    const length = Math.min(rest.length, target.length);
    target.set(rest.subarray(0, length));
    this.rest = length < rest.length ? rest.subarray(length) : null;
    return length;
  }

  /** Adds content to the hash, in order. */
  hashed(bytes: Uint8Array): void {
    this.hash.update(bytes);
    this.sampled = grownSamples(this.sampled, this.position, this.tailBytes, bytes);
    this.position += bytes.length;
    this.tailBytes = contentTail(this.tailBytes, bytes);
  }

  /** The hash of the content up to `offset`, in the form of checkpoints. */
  digest(): string {
    return this.hash.digest();
  }

  /** The samples of the content up to `offset`, as `grownSamples` takes them. */
  samples(): string {
    return this.sampled;
  }

  /** The last bytes before `offset`, at most `tailBytesMax`. */
  tail(): Uint8Array {
    return this.tailBytes;
  }
}
