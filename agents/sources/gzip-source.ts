import { createGunzip, type Gunzip } from 'node:zlib';
import type { ByteSource } from './byte-source.js';
import { SourceError, systemCode } from './source-error.js';

/** Bytes of content per piece: large enough that the trips through zlib's thread cost little. */
const gzipPieceBytes = 256 * 1024;

/**
 * Decompresses a gzip file (RFC 1952) of one or more members. Zero bytes after the last member are padding, as for gzip
 * itself; anything else there is damage.
 */
export class GzipSource implements ByteSource {
  private readonly gunzip: Gunzip = createGunzip({ chunkSize: gzipPieceBytes });
  private readonly output: AsyncIterator<Uint8Array>;
  private pumping: Promise<void> | undefined;
  private piece: Uint8Array | null = null;
  private pieceStart = 0;
  private stopped = false;
  private ended = false;
  private failure: unknown;

  constructor(private readonly inner: ByteSource) {
    this.output = this.gunzip[Symbol.asyncIterator]();
  }

  get path(): string {
    return this.inner.path;
  }

  get bytesTaken(): number {
    return this.inner.bytesTaken;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.ended) return null;
    this.pumping ??= this.pump();
    try {
      const result = await this.output.next();
      if (result.done !== true) return result.value;
    } catch (error) {
      if (this.failure !== undefined) throw this.failure;
      if (this.stopped) return this.end();
      throw this.explain(error);
    }
    this.ended = true;
    await this.pumping;
    await this.checkPadding();
    return null;
  }

  private end(): null {
    this.ended = true;
    return null;
  }

  /** Feeds zlib one piece at a time, because the inner source may reuse a piece's memory afterwards. */
  private async pump(): Promise<void> {
    try {
      while (!this.ended && !this.gunzip.readableEnded) {
        const start = this.inner.bytesTaken;
        const piece = await this.inner.next();
        if (piece === null) break;
        this.piece = piece;
        this.pieceStart = start;
        await this.write(piece);
        if (this.gunzip.bytesWritten < start + piece.length) return;
        this.piece = null;
      }
      if (!this.gunzip.writableEnded) this.gunzip.end();
    } catch (error) {
      // zlib's own failures also appear on its readable side, and are explained there.
      if (error instanceof SourceError) this.failure = error;
      this.gunzip.destroy(error instanceof Error ? error : undefined);
    }
  }

  private write(piece: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (error?: Error | null): void => {
        this.gunzip.off('close', settle);
        this.gunzip.off('end', settle);
        if (error) reject(error);
        else resolve();
      };
      this.gunzip.once('close', settle);
      this.gunzip.once('end', settle);
      this.gunzip.write(piece, settle);
    });
  }

  private async checkPadding(): Promise<void> {
    const consumed = this.gunzip.bytesWritten;
    let start = this.pieceStart;
    let piece = this.piece;
    if (piece !== null) this.requirePadding(piece, consumed - start, start);
    for (;;) {
      start = this.inner.bytesTaken;
      piece = await this.inner.next();
      if (piece === null) return;
      this.requirePadding(piece, 0, start);
    }
  }

  private requirePadding(piece: Uint8Array, from: number, pieceStart: number): void {
    for (let i = from; i < piece.length; i++) {
      if (piece[i] !== 0) {
        const offset = pieceStart + i;
        throw new SourceError(
          'damaged',
          `${this.path} has data that is not gzip at byte ${offset}, after its last member`,
          {
            path: this.path,
            offset,
          },
        );
      }
    }
  }

  private explain(error: unknown): SourceError {
    const reached = Math.max(this.gunzip.bytesWritten, this.pieceStart);
    const place = { path: this.path, offset: reached, cause: error };
    if (systemCode(error) === 'Z_BUF_ERROR') {
      return new SourceError(
        'damaged',
        `${this.path} is a truncated gzip file: it ends at byte ${this.inner.bytesTaken}, in the middle of the compressed data`,
        { ...place, offset: this.inner.bytesTaken },
      );
    }
    const why = error instanceof Error ? error.message : String(error);
    return new SourceError(
      'damaged',
      `${this.path} is a damaged gzip file: ${why}, at or after byte ${reached}`,
      place,
    );
  }

  stop(): void {
    this.stopped = true;
    this.inner.stop();
  }

  async close(): Promise<void> {
    this.stop();
    this.ended = true;
    this.gunzip.destroy();
    await this.pumping;
    await this.inner.close();
  }
}
