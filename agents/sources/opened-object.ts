import { isLogstrataError, isObjectPath, type ObjectStamp, type ObjectStorage } from '../../engine/index.js';
import type { ByteSource } from './byte-source.js';
import { openOnDisk, type OpenedFile, type OpenFile } from './opened-file.js';
import { SourceError } from './source-error.js';

/**
 * Bytes of the first request, and the maximum: each request asks for twice as much as the one before. Often only the
 * beginning of an object is wanted.
 */
const firstBytes = 64 * 1024;
const pieceBytesMax = 4 * 1024 * 1024;

/** Returns a function that opens files on disk, and the objects that `s3://` paths name. */
export function openerOf(objects: ObjectStorage | undefined): OpenFile {
  return async (path) => {
    if (!isObjectPath(path)) return openOnDisk(path);
    if (objects === undefined)
      throw new SourceError('invalid', `${path} can't be read: no object storage is open`, { path });
    const stamp = await ofObject(path, () => objects.stamp(path));
    return new OpenedObject(path, stamp, objects);
  };
}

/** An open object. Everything that is read of it belongs to one version. */
class OpenedObject implements OpenedFile {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: string;
  readonly etag: string;
  readonly bytes: ByteSource;

  constructor(
    private readonly path: string,
    private readonly stamp: ObjectStamp,
    private readonly objects: ObjectStorage,
  ) {
    this.size = stamp.bytes;
    this.mtimeMs = stamp.mtimeMs;
    this.inode = `etag:${stamp.etag}`;
    this.etag = stamp.etag;
    this.bytes = new ObjectSource(path, stamp.bytes, (at, length) => this.read(at, length));
  }

  read(at: number, length: number): Promise<Uint8Array> {
    const { path, stamp, objects } = this;
    const to = Math.min(at + length, this.size);
    if (to <= at) return Promise.resolve(new Uint8Array(0));
    return ofObject(path, () => objects.read({ path, ...stamp }, at, to));
  }

  now(): Promise<OpenedFile> {
    return Promise.resolve(this);
  }
}

/** Reads the bytes of an object in pieces. The next piece is fetched while one is processed. */
class ObjectSource implements ByteSource {
  private taken = 0;
  private asked = 0;
  private pieceBytes = firstBytes;
  private ahead: Promise<Uint8Array> | undefined;
  private isStopped = false;

  constructor(
    readonly path: string,
    private readonly sizeBytes: number,
    private readonly read: (at: number, length: number) => Promise<Uint8Array>,
  ) {}

  get bytesTaken(): number {
    return this.taken;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.isStopped || this.taken >= this.sizeBytes) return null;
    const isFirst = this.ahead === undefined;
    const piece = await (this.ahead ?? this.ask());
    this.taken += piece.length;
    this.ahead = undefined;
    // No reading ahead after a first piece of at most `firstBytes`, because many callers read only the beginning.
    if (!isFirst || this.taken > firstBytes) this.askAhead();
    return piece;
  }

  private ask(): Promise<Uint8Array> {
    const at = this.asked;
    const length = Math.min(this.pieceBytes, this.sizeBytes - at);
    this.asked += length;
    this.pieceBytes = Math.min(pieceBytesMax, 2 * this.pieceBytes);
    return this.read(at, length);
  }

  private askAhead(): void {
    if (this.isStopped || this.asked >= this.sizeBytes) return;
    this.ahead = this.ask();
    // The call that waits for this piece throws its failure; until then it must not end the process as an unhandled rejection.
    this.ahead.catch(() => {});
  }

  stop(): void {
    this.isStopped = true;
  }

  async close(): Promise<void> {
    this.stop();
    await this.ahead?.catch(() => {});
    this.ahead = undefined;
  }
}

/** Calls `work`; turns its errors into `SourceError`, because the failure of one object does not concern others. */
async function ofObject<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    const { code, message, offset } = error;
    const place = offset === undefined ? { path } : { path, offset };
    throw new SourceError(code, message, { ...place, cause: error });
  }
}
