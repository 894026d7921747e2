import { userInfo } from 'node:os';
import type { Readable } from 'node:stream';
import { type ErrorCode, type ErrorPlace, isLogstrataError, LogstrataError } from '../../engine/index.js';

/**
 * A failure of a single source: it can't be read, is damaged, or is not what the agent expects. Loading goes on with the
 * other files; any other failure stops it.
 */
export class SourceError extends LogstrataError {
  constructor(code: ErrorCode, message: string, place: ErrorPlace & { path: string }) {
    super(code, message, place);
    this.name = 'SourceError';
  }
}

/** What to throw for a failure of a source: an expected failure concerns only this source. */
export function asSourceError(error: unknown, path: string): unknown {
  if (!isLogstrataError(error)) return error;
  const { code, message, offset } = error;
  return new SourceError(code, message, { path, offset, cause: error });
}

/** The `code` of a Node system error (`ENOENT`, `EACCES`, …), or undefined. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The error for a failure to open or inspect `path`, with a message for the user. */
export function describeSystemError(error: unknown, path: string): SourceError {
  switch (systemCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new SourceError('not_found', `${path} is not there`, { path, cause: error });
    case 'EACCES':
    case 'EPERM':
      return new SourceError('io', `${path} can't be read: user ${userName()} has no permission`, {
        path,
        cause: error,
      });
    case 'EISDIR':
      return new SourceError('invalid', `${path} is a folder; name its files`, { path, cause: error });
    default: {
      const why = error instanceof Error ? error.message : String(error);
      return new SourceError('io', `${path} can't be read: ${why}`, { path, cause: error });
    }
  }
}

/** The current user for messages: the name, or the numeric id of a user without a name (as in many containers). */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** A sequence of bytes that is read once, in order, piece by piece. */
export interface ByteSource {
  /** The path as given, `-` for standard input; used in messages. */
  readonly path: string;
  /** Number of bytes of the file or stream that were taken so far, before decompression. */
  readonly bytesTaken: number;
  /** Returns the next piece, never empty; null at the end. The piece is valid until the next call. Throws `SourceError`. */
  next(): Promise<Uint8Array | null>;
  /**
   * Like `next`, but reads into `target`, at most as many bytes as it holds; returns 0 at the end. Undefined for a source
   * that produces its bytes itself, as by decompression.
   */
  readonly nextInto?: ((target: Uint8Array) => Promise<number>) | undefined;
  /** Ends the source here, also for a call of `next` that is waiting. */
  stop(): void;
  /** Releases all resources, also before the end. */
  close(): Promise<void>;
}

/** A file that is read piece by piece. */
interface PiecedFile {
  readonly path: string;
  readonly size: number;
  /** Reads `length` bytes from offset `at`, fewer at the end of the file. */
  read(at: number, length: number): Promise<Uint8Array>;
  /** Like `read`, into `target`; returns how many bytes were read. Undefined where bytes come in memory of their own. */
  readonly readInto?: ((target: Uint8Array, at: number) => Promise<number>) | undefined;
  close(): Promise<void>;
}

/** After a first piece of at most this size nothing is read ahead, because many callers read only the beginning. */
const beginningBytes = 64 * 1024;

/**
 * Reads a file up to the size that it had when it was opened, so that reading ends even if the file is still written to. The
 * next piece is read while one is processed, and is twice as large, up to a maximum.
 */
export class FileSource implements ByteSource {
  private taken = 0;
  private asked = 0;
  private ahead: Promise<Uint8Array> | undefined;
  private isStopped = false;

  constructor(
    private readonly file: PiecedFile,
    private pieceBytes: number,
    private readonly pieceBytesMax: number,
  ) {}

  get path(): string {
    return this.file.path;
  }

  get bytesTaken(): number {
    return this.taken;
  }

  private get isAtEnd(): boolean {
    return this.isStopped || this.taken >= this.file.size;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.isAtEnd) return null;
    const isFirst = this.ahead === undefined;
    const piece = await (this.ahead ?? this.ask());
    this.taken += piece.length;
    this.ahead = undefined;
    if ((isFirst && this.taken <= beginningBytes) || this.isStopped || this.asked >= this.file.size)
      return piece;
    this.ahead = this.ask();
    // The call that waits for this piece throws its failure; until then it must not end the process as an unhandled rejection.
    this.ahead.catch(() => {});
    return piece;
  }

  private async ask(): Promise<Uint8Array> {
    const at = this.asked;
    const length = Math.min(this.pieceBytes, this.file.size - at);
    this.asked += length;
    this.pieceBytes = Math.min(this.pieceBytesMax, 2 * this.pieceBytes);
    const piece = await this.file.read(at, length);
    this.requireLength(at, piece.length, length);
    return piece;
  }

  get nextInto(): ByteSource['nextInto'] {
    const { file } = this;
    if (file.readInto === undefined) return undefined;
    return async (target) => {
      if (this.isAtEnd) return 0;
      // The piece that is being read ahead is discarded, and read again into the target; that happens once.
      await this.ahead;
      this.ahead = undefined;
      const length = Math.min(target.length, file.size - this.taken);
      const read = await file.readInto!(target.subarray(0, length), this.taken);
      this.requireLength(this.taken, read, length);
      this.taken += length;
      this.asked = this.taken;
      return length;
    };
  }

  private requireLength(at: number, read: number, length: number): void {
    if (read === length) return;
    const { path, size } = this.file;
    const offset = at + read;
    const message = `${path} shrank while it was read: it had ${size} bytes and now ends at byte ${offset}`;
    throw new SourceError('io', message, { path, offset });
  }

  stop(): void {
    this.isStopped = true;
  }

  async close(): Promise<void> {
    this.stop();
    await this.ahead?.catch(() => {});
    this.ahead = undefined;
    await this.file.close();
  }
}

/** Reads a stream such as standard input. The stream's high-water mark bounds what is buffered. */
export class StreamSource implements ByteSource {
  private taken = 0;
  private readonly iterator: AsyncIterator<unknown>;
  private endWaiting: () => void = () => {};
  private stopped = false;

  constructor(
    readonly path: string,
    private readonly input: Readable,
  ) {
    this.iterator = input[Symbol.asyncIterator]();
  }

  get bytesTaken(): number {
    return this.taken;
  }

  async next(): Promise<Uint8Array | null> {
    while (!this.stopped) {
      const piece = await this.nextOrStop();
      if (piece === null) return null;
      if (piece.length === 0) continue;
      this.taken += piece.length;
      return piece;
    }
    return null;
  }

  private async nextOrStop(): Promise<Uint8Array | null> {
    try {
      const result = await new Promise<IteratorResult<unknown> | null>((resolve, reject) => {
        this.endWaiting = () => resolve(null);
        this.iterator.next().then(resolve, reject);
      });
      if (result === null || result.done === true) return null;
      const piece = result.value;
      if (piece instanceof Uint8Array) return piece;
      return Buffer.from(String(piece));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = this.isHungUp(error)
        ? `standard input ended at byte ${this.taken}: its terminal was closed`
        : `${this.path} can't be read at byte ${this.taken}: ${why}`;
      throw new SourceError('io', message, { path: this.path, offset: this.taken, cause: error });
    }
  }

  private isHungUp(error: unknown): boolean {
    return systemCode(error) === 'EIO' && 'isTTY' in this.input && this.input.isTTY === true;
  }

  stop(): void {
    this.stopped = true;
    this.endWaiting();
  }

  async close(): Promise<void> {
    this.stop();
    this.input.destroy();
    await Promise.resolve();
  }
}

/** A source whose first bytes can be looked at before they are taken. */
export class PeekedSource implements ByteSource {
  private held: Uint8Array | null = null;

  constructor(private readonly inner: ByteSource) {}

  get path(): string {
    return this.inner.path;
  }

  get bytesTaken(): number {
    return this.inner.bytesTaken - (this.held?.length ?? 0);
  }

  /** Returns the first `count` bytes without taking them, fewer where the source is shorter. Call it before `next`. */
  async peek(count: number): Promise<Uint8Array> {
    while ((this.held?.length ?? 0) < count) {
      const piece = await this.inner.next();
      if (piece === null) break;
      // A copy, because the inner source may reuse the piece's memory.
      this.held = this.held === null ? piece.slice() : Buffer.concat([this.held, piece]);
    }
    return (this.held ?? new Uint8Array(0)).subarray(0, count);
  }

  /** Returns the first piece of the source without taking it; empty for an empty source. Call it before `next`. */
  async firstPiece(): Promise<Uint8Array> {
    await this.peek(1);
    return this.held ?? new Uint8Array(0);
  }

  async next(): Promise<Uint8Array | null> {
    if (this.held === null) return this.inner.next();
    const piece = this.held;
    this.held = null;
    return piece;
  }

  /** Gives back the end of the piece that `next` returned last. */
  protected giveBack(rest: Uint8Array): void {
    if (rest.length > 0) this.held = rest;
  }

  get nextInto(): ByteSource['nextInto'] {
    const inner = this.inner.nextInto;
    if (inner === undefined) return undefined;
    return async (target) => {
      const { held } = this;
      if (held === null) return inner(target);
      const length = Math.min(held.length, target.length);
      target.set(held.subarray(0, length));
      this.held = length < held.length ? held.subarray(length) : null;
      return length;
    };
  }

  stop(): void {
    this.inner.stop();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
