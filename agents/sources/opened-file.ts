import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isObjectPath } from '../../engine/index.js';
import { FileSource, type ByteSource } from './byte-source.js';
import { describeSystemError, SourceError } from './source-error.js';

/** A file that is open to be read: one of a disk, or an object of an object storage. Methods throw `SourceError`. */
export interface OpenedFile {
  /** Bytes, and when it was changed last (ms), as of when it was opened. */
  readonly size: number;
  readonly mtimeMs: number;
  /** What tells it from other files: of a disk, its device and number. */
  readonly inode: string;
  /** Of an object: what its storage calls this version. */
  readonly etag?: string;
  /** Its bytes, once; closing that closes the file. */
  readonly bytes: ByteSource;
  /** Bytes from `at` on, fewer where it ends. */
  read(at: number, length: number): Promise<Uint8Array>;
  /** What it is now: somebody may write to it. */
  now(): Promise<{ readonly size: number; readonly mtimeMs: number }>;
}

/** Opens the file of a path. Throws `SourceError` when it can't be read, or is no regular file. */
export type OpenFile = (path: string) => Promise<OpenedFile>;

/** A path as it is stored: absolute, or that of an object. */
export function absolutePath(path: string): string {
  return isObjectPath(path) ? path : resolve(path);
}

/** Opens files of a disk. */
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

class FileOnDisk implements OpenedFile {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: string;
  readonly bytes: ByteSource;

  constructor(
    private readonly path: string,
    private readonly handle: FileHandle,
    stats: Stats,
  ) {
    this.size = stats.size;
    this.mtimeMs = stats.mtimeMs;
    this.inode = inodeOf(stats);
    this.bytes = new FileSource(path, handle, stats.size);
  }

  async read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    const { bytesRead } = await this.handle.read(bytes, 0, length, at);
    return bytes.subarray(0, bytesRead);
  }

  async now(): Promise<Stats> {
    try {
      return await this.handle.stat();
    } catch (error) {
      throw describeSystemError(error, this.path);
    }
  }
}

/** Device and number of a file, as checkpoints name them. */
export function inodeOf({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`;
}

function requireRegularFile(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  const what = stats.isDirectory() ? `a folder; name its files: ${join(path, '*')}` : 'not a regular file';
  const hint = stats.isDirectory() ? '' : '; pipe it in: … | logstrata load AGENT -';
  throw new SourceError('invalid', `${path} is ${what}${hint}`, { path });
}
