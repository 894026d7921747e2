import { createGunzip, type Gunzip } from 'node:zlib';
import { type ByteSource, SourceError, systemCode } from './byte-source.js';
import { assert, type ZstdLibrary, loadZstd } from '../../engine/index.js';

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

/** Compressed bytes that are given to the decoder at once, and content that it returns at once (a zstd block is at most 128 KiB). */
const inputBytes = 128 * 1024;
const outputBytes = 256 * 1024;

/** Size of ZSTD_inBuffer and ZSTD_outBuffer: pointer, size, position. */
const bufferStructBytes = 12;

/** Messages for the error codes of `zstd_errors.h` that a damaged or unusual file causes. */
const errorTexts = new Map<number, string>([
  [10, 'no zstd frame begins here'],
  [12, 'the version of the format is not supported'],
  [14, 'the frame uses a parameter that is not supported'],
  [
    16,
    'the frame needs a window of more than 128 MiB (made with --long=28 or more); decompress it with zstd -dc --long=31',
  ],
  [20, 'the compressed data is corrupt'],
  [22, 'the checksum does not match the content'],
  [32, 'the frame needs a dictionary, which is not available'],
  [64, 'not enough memory'],
]);

/** An error code of libzstd. */
class ZstdError extends Error {
  constructor(readonly zstdCode: number) {
    super(errorTexts.get(zstdCode) ?? `zstd error ${zstdCode}`);
    this.name = 'ZstdError';
  }
}

/** A decompression of any number of consecutive frames. Memory is bounded by one window, at most 128 MiB. */
class ZstdStream {
  private readonly context: number;
  private readonly input: number;
  private readonly output: number;
  private readonly inputStruct: number;
  private readonly outputStruct: number;
  private lastResult = 0;
  private inputEnd = 0;
  private inputAt = 0;
  private outputWasFull = false;
  private freed = false;

  constructor(private readonly zstd: ZstdLibrary) {
    this.context = zstd.ZSTD_createDCtx();
    this.input = zstd.malloc(inputBytes);
    this.output = zstd.malloc(outputBytes);
    this.inputStruct = zstd.malloc(bufferStructBytes);
    this.outputStruct = zstd.malloc(bufferStructBytes);
    assert(this.context !== 0 && this.outputStruct !== 0, 'no memory for a zstd decoder');
  }

  /** Whether all frames so far are complete. */
  get betweenFrames(): boolean {
    return this.lastResult === 0;
  }

  /** Bytes of the last input that have not been consumed. */
  get inputLeftBytes(): number {
    return this.inputEnd - this.inputAt;
  }

  /** Gives compressed bytes to the decoder; allowed only when the last input is used up. Returns how many bytes were taken. */
  give(bytes: Uint8Array): number {
    assert(!this.freed && this.inputLeftBytes === 0, 'zstd input given too early');
    const taken = Math.min(bytes.length, inputBytes);
    new Uint8Array(this.zstd.memory.buffer, this.input, taken).set(bytes.subarray(0, taken));
    this.inputAt = 0;
    this.inputEnd = taken;
    return taken;
  }

  /** Returns the next content, as a copy; null when more input is needed. Throws `ZstdError`. */
  take(): Uint8Array | null {
    while (this.inputLeftBytes > 0 || this.outputWasFull) {
      const produced = this.step();
      if (produced > 0) return new Uint8Array(this.zstd.memory.buffer, this.output, produced).slice();
    }
    return null;
  }

  private step(): number {
    const before = new DataView(this.zstd.memory.buffer);
    setBuffer(before, this.inputStruct, this.input, this.inputEnd, this.inputAt);
    setBuffer(before, this.outputStruct, this.output, outputBytes, 0);
    const result = this.zstd.ZSTD_decompressStream(this.context, this.outputStruct, this.inputStruct) >>> 0;
    // Error codes are small negative numbers (ZSTD_isError); everything else is a size.
    if (result > 0xffff_ff00) throw new ZstdError(0x1_0000_0000 - result);
    // A new view, because the call may have grown the memory, which detaches the old one.
    const after = new DataView(this.zstd.memory.buffer);
    const produced = after.getUint32(this.outputStruct + 8, true);
    this.inputAt = after.getUint32(this.inputStruct + 8, true);
    this.lastResult = result;
    this.outputWasFull = produced === outputBytes;
    return produced;
  }

  /** Frees the decoder's memory. */
  free(): void {
    if (this.freed) return;
    this.freed = true;
    this.zstd.ZSTD_freeDCtx(this.context);
    for (const pointer of [this.input, this.output, this.inputStruct, this.outputStruct])
      this.zstd.free(pointer);
  }
}

function setBuffer(view: DataView, struct: number, pointer: number, size: number, position: number): void {
  view.setUint32(struct, pointer, true);
  view.setUint32(struct + 4, size, true);
  view.setUint32(struct + 8, position, true);
}

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
