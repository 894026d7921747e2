import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isObjectPath, type ObjectStamp, type ObjectStorage } from '../../engine/index.js';
import {
  asSourceError,
  FileSource,
  type ByteSource,
  describeSystemError,
  SourceError,
} from './byte-source.js';

/** An open file: on disk, or an object of an object storage. Methods throw `SourceError`. */
export interface OpenedFile {
  readonly path: string;
  /** Opens the file that is at the path now. */
  readonly reopen: () => Promise<OpenedFile>;
  /** Size in bytes and modification time in milliseconds (`mtimeMs`), as of opening. */
  readonly size: number;
  readonly mtimeMs: number;
  /** Identifies the file: of a file on disk, its device and inode number. */
  readonly inode: string;
  /** Of an object, the storage's identifier of this version. */
  readonly etag?: string;
  /** The content, which can be read once; closing it closes the file. */
  readonly bytes: ByteSource;
  /** Reads `length` bytes from offset `at`, fewer at the end of the file. */
  read(at: number, length: number): Promise<Uint8Array>;
  /** The current size and modification time; the file may be written to. */
  now(): Promise<{ readonly size: number; readonly mtimeMs: number }>;
}

/** Opens a file. Throws `SourceError` when it can't be read or is not a regular file. */
export type OpenFile = (path: string) => Promise<OpenedFile>;

/** A path in the form in which it is stored: absolute, or an object path. */
export function absolutePath(path: string): string {
  return isObjectPath(path) ? path : resolve(path);
}

/** Opens files on disk. */
export const openOnDisk: OpenFile = async (path) => {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe waits for a writer.
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw describeSystemError(error, path);
  }
  try {
    const stats = await handle.stat();
    requireRegularFile(stats, path);
    return new FileOnDisk(path, handle, stats);
  } catch (error) {
    await handle.close();
    throw error instanceof SourceError ? error : describeSystemError(error, path);
  }
};

/** Bytes per read of a file. Larger reads gain nothing; each read costs a trip through the thread pool. */
const filePieceBytes = 512 * 1024;

class FileOnDisk implements OpenedFile {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: string;
  readonly bytes = new FileSource(this, filePieceBytes, filePieceBytes);

  constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    stats: Stats,
  ) {
    this.size = stats.size;
    this.mtimeMs = stats.mtimeMs;
    this.inode = inodeOf(stats);
  }

  readonly reopen = (): Promise<OpenedFile> => openOnDisk(this.path);

  async read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    return bytes.subarray(0, await this.readInto(bytes, at));
  }

  async readInto(target: Uint8Array, at: number): Promise<number> {
    let filled = 0;
    for (let read = -1; filled < target.length && read !== 0; filled += read)
      read = await this.readSome(target.subarray(filled), at + filled);
    return filled;
  }

  private async readSome(target: Uint8Array, offset: number): Promise<number> {
    try {
      return (await this.handle.read(target, 0, target.length, offset)).bytesRead;
    } catch (error) {
      const { path } = this;
      const why = error instanceof Error ? error.message : String(error);
      throw new SourceError('io', `${path} can't be read at byte ${offset}: ${why}`, {
        path,
        offset,
        cause: error,
      });
    }
  }

  async now(): Promise<Stats> {
    try {
      return await this.handle.stat();
    } catch (error) {
      throw describeSystemError(error, this.path);
    }
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Device and inode number of a file, in the form that checkpoints have. */
export function inodeOf({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`;
}

function requireRegularFile(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  const what = stats.isDirectory() ? `a folder; name its files: ${join(path, '*')}` : 'not a regular file';
  const hint = stats.isDirectory() ? '' : '; pipe it in: … | logstrata load AGENT -';
  throw new SourceError('invalid', `${path} is ${what}${hint}`, { path });
}

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
  readonly bytes = new FileSource(this, firstBytes, pieceBytesMax);

  constructor(
    readonly path: string,
    private readonly stamp: ObjectStamp,
    private readonly objects: ObjectStorage,
  ) {
    this.size = stamp.bytes;
    this.mtimeMs = stamp.mtimeMs;
    this.inode = `etag:${stamp.etag}`;
    this.etag = stamp.etag;
  }

  readonly reopen = (): Promise<OpenedFile> => openerOf(this.objects)(this.path);

  read(at: number, length: number): Promise<Uint8Array> {
    const { path, stamp, objects } = this;
    const to = Math.min(at + length, this.size);
    if (to <= at) return Promise.resolve(new Uint8Array(0));
    return ofObject(path, () => objects.read({ path, ...stamp }, at, to));
  }

  now(): Promise<OpenedFile> {
    return Promise.resolve(this);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Calls `work`; turns its errors into `SourceError`, because the failure of one object does not concern others. */
async function ofObject<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asSourceError(error, path);
  }
}
