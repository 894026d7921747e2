import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isObjectPath } from '../../engine/index.js';
import { FileSource, type ByteSource } from './byte-source.js';
import { describeSystemError, SourceError } from './source-error.js';

/** An open file: on disk, or an object of an object storage. Methods throw `SourceError`. */
export interface OpenedFile {
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
