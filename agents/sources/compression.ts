import { pipeline } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type ByteSource, SourceError, systemCode } from './byte-source.js';
import { assert, type ZstdLibrary, loadZstd } from '../../engine/index.js';

/** Bytes of content per piece: large enough that the trips through zlib's thread cost little. */
const gzipPieceBytes = 256 * 1024;

/** It is given one piece at a time, so that the one in which the last member ends is known. */
const gunzipOptions = { chunkSize: gzipPieceBytes, writableHighWaterMark: 1 };

/**
 * Decompresses a gzip file (RFC 1952) of one or more members. Zero bytes after the last member are padding, as for gzip
 * itself; anything else there is damage.
 */
export class GzipSource implements ByteSource {
  private readonly gunzip: Gunzip = createGunzip(gunzipOptions);
  private output: AsyncIterator<Uint8Array> | undefined;
  /** The piece that zlib was given last, and its offset in the file. */
  private piece: Uint8Array = new Uint8Array(0);
  private pieceStart = 0;
  private isStopped = false;
  private hasEnded = false;

  constructor(private readonly inner: ByteSource) {}

  get path(): string {
    return this.inner.path;
  }

  get bytesTaken(): number {
    return this.inner.bytesTaken;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.hasEnded) return null;
    // What fails appears on the readable side. What follows the last member is not written, so the pipeline may never end.
    this.output ??= pipeline(this.pieces(), this.gunzip, () => {})[Symbol.asyncIterator]();
    try {
      const { done, value } = await this.output.next();
      if (done !== true) return value;
    } catch (error) {
      if (error instanceof SourceError) throw error;
      if (!this.isStopped) throw this.explain(error);
    }
    this.hasEnded = true;
    if (!this.isStopped) await this.requirePadding();
    return null;
  }

  private async *pieces(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const start = this.inner.bytesTaken;
      const piece = await this.inner.next();
      if (piece === null) return;
      this.piece = piece;
      this.pieceStart = start;
      yield piece;
    }
  }

  private async requirePadding(): Promise<void> {
    let from = this.gunzip.bytesWritten - this.pieceStart;
    for (let piece: Uint8Array | null = this.piece; piece !== null; piece = await this.inner.next()) {
      const at = piece.findIndex((byte, i) => i >= from && byte !== 0);
      const offset = this.pieceStart + at;
      if (at >= 0)
        throw this.damaged(`has data that is not gzip at byte ${offset}, after its last member`, offset);
      from = 0;
      this.pieceStart = this.inner.bytesTaken;
    }
  }

  private explain(error: unknown): SourceError {
    const { bytesTaken } = this.inner;
    const reached = Math.max(this.gunzip.bytesWritten, this.pieceStart);
    if (systemCode(error) === 'Z_BUF_ERROR') {
      const what = `is a truncated gzip file: it ends at byte ${bytesTaken}, in the middle of the compressed data`;
      return this.damaged(what, bytesTaken, error);
    }
    const why = error instanceof Error ? error.message : String(error);
    return this.damaged(`is a damaged gzip file: ${why}, at or after byte ${reached}`, reached, error);
  }

  private damaged(what: string, offset: number, cause?: unknown): SourceError {
    return damagedFile(this.path, what, offset, cause);
  }

  stop(): void {
    this.isStopped = true;
    this.inner.stop();
  }

  async close(): Promise<void> {
    this.stop();
    this.hasEnded = true;
    this.gunzip.destroy();
    await this.inner.close();
  }
}

function damagedFile(path: string, what: string, offset: number, cause?: unknown): SourceError {
  return new SourceError('damaged', `${path} ${what}`, { path, offset, cause });
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
      const what = `is a zstd file that can't be read: ${error.message}, at or after byte ${offset}`;
      throw damagedFile(this.path, what, offset, error);
    }
  }

  private endOf(stream: ZstdStream): null {
    if (stream.betweenFrames || this.stopped) return null;
    const offset = this.inner.bytesTaken;
    const what = `is a truncated zstd file: it ends at byte ${offset}, in the middle of a frame`;
    throw damagedFile(this.path, what, offset);
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
