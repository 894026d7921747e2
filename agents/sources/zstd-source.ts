import { loadZstd } from '../../engine/index.js';
import type { ByteSource } from './byte-source.js';
import { SourceError } from './source-error.js';
import { ZstdError, ZstdStream } from './zstd-decoder.js';

/**
 * Decompresses a zstd file (RFC 8878): consecutive frames and skippable frames, with checksums verified. Always uses libzstd
 * in WebAssembly: node:zlib has zstd only since 22.15, and silently ends at the first frame.
 */
export class ZstdSource implements ByteSource {
  private stream: ZstdStream | undefined;
  private piece: Uint8Array | null = null;
  private stopped = false;

  constructor(private readonly inner: ByteSource) {}

  get path(): string {
    return this.inner.path;
  }

  get bytesTaken(): number {
    return this.inner.bytesTaken - (this.piece?.length ?? 0) - (this.stream?.inputLeftBytes ?? 0);
  }

  async next(): Promise<Uint8Array | null> {
    this.stream ??= new ZstdStream(await loadZstd());
    for (;;) {
      const content = this.take(this.stream);
      if (content !== null) return content;
      if (this.piece === null || this.piece.length === 0) this.piece = await this.inner.next();
      if (this.piece === null) return this.endOf(this.stream);
      this.piece = this.piece.subarray(this.stream.give(this.piece));
    }
  }

  private take(stream: ZstdStream): Uint8Array | null {
    try {
      return stream.take();
    } catch (error) {
      if (!(error instanceof ZstdError)) throw error;
      const offset = this.bytesTaken;
      throw new SourceError(
        'damaged',
        `${this.path} is a zstd file that can't be read: ${error.message}, at or after byte ${offset}`,
        {
          path: this.path,
          offset,
          cause: error,
        },
      );
    }
  }

  private endOf(stream: ZstdStream): null {
    if (stream.betweenFrames || this.stopped) return null;
    const offset = this.inner.bytesTaken;
    throw new SourceError(
      'damaged',
      `${this.path} is a truncated zstd file: it ends at byte ${offset}, in the middle of a frame`,
      { path: this.path, offset },
    );
  }

  stop(): void {
    this.stopped = true;
    this.inner.stop();
  }

  async close(): Promise<void> {
    this.stop();
    this.stream?.free();
    await this.inner.close();
  }
}
