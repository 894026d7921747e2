import { createHash, type Hash } from 'node:crypto';
import { PeekedSource, type ByteSource } from './byte-source.js';

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

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * The content of a source as identity sees it: the beginning can be looked at, a part can be passed over, and the hash of
 * what was passed over or read is at hand. Whoever reads by `next` says to `hashed` what became part of the archive.
 */
export class ContentReader {
  private readonly source: PeekedSource;
  private rest: Uint8Array | null = null;
  private readonly hash: Hash = createHash('sha256');
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
    this.position += bytes.length;
    this.tailBytes = contentTail(this.tailBytes, bytes);
  }

  /** SHA-256 of the content up to `offset`, in hexadecimal. */
  digest(): string {
    return this.hash.copy().digest('hex');
  }

  /** The last bytes before `offset`, at most `tailBytesMax`. */
  tail(): Uint8Array {
    return this.tailBytes;
  }
}
