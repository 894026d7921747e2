import { promises as fs, constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { type ForeignPlace, readCopy } from '../objects/object-blocks.js';
import { ContentHash } from '../kernels/xxh64.js';
import { openFiles, type OpenFiles } from '../store/disk/open-files.js';
import { FormatError } from '../parquet/format.js';
import { fileSystemError, problemOfKind } from '../store/disk/directory.js';
import { DamageError, LogstrataError } from '../core/errors.js';

/** Returns the XXH64 of `bytes` as `xxh64:` and 16 hex digits. */
export function contentHash(bytes: Uint8Array): string {
  const hash = new ContentHash();
  hash.update(bytes);
  return hash.digest();
}

/**
 * Reads bytes of a file from offset `at` until `target` is full or the file ends; returns the number of bytes read.
 * Synchronous: for worker threads. Throws `not_found` and `io` with the path, and `absent` for bytes of an object that are
 * not on this machine.
 *
 * @param files the file handles that are kept open
 */
export function readForeignBytes(
  { path, copy }: ForeignPlace,
  at: number,
  target: Uint8Array,
  files: OpenFiles = openFiles,
): number {
  return copy === undefined ? files.read(path, at, target) : readCopy(path, copy, at, target);
}

/** An open file of another program. */
export class ForeignSource {
  constructor(
    readonly path: string,
    /** Size in bytes. */
    readonly size: number,
    private readonly readInto: (target: Uint8Array, from: number, at: number) => Promise<number>,
  ) {}

  /** Returns the bytes [at, at + length). Throws `FormatError` where the file ends before that. */
  async read(at: number, length: number): Promise<Uint8Array> {
    if (at + length > this.size)
      throw new FormatError(`the file is too short for the ${length} bytes expected here`, at);
    const bytes = new Uint8Array(length);
    let done = 0;
    while (done < length) {
      const bytesRead = await this.readInto(bytes, done, at + done);
      if (bytesRead === 0) throw new FormatError('the file ends here: it is shorter than before', at + done);
      done += bytesRead;
    }
    return bytes;
  }
}

/**
 * Opens a file for `use` and closes it afterwards. A `FormatError` with its offset becomes a `DamageError` with the path.
 * Also throws `not_found`, `io`, and `absent` for bytes of an object that are not on this machine.
 */
export async function withForeignSource<T>(
  { path, copy }: ForeignPlace,
  use: (source: ForeignSource) => Promise<T>,
): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    if (copy !== undefined) {
      const readInto = (target: Uint8Array, from: number, at: number) =>
        Promise.resolve(readCopy(path, copy, at, target.subarray(from)));
      return await use(new ForeignSource(path, copy.bytes, readInto));
    }
    // Without O_NONBLOCK, opening a named pipe waits for a writer.
    const file = (handle = await fs.open(path, constants.O_RDONLY | constants.O_NONBLOCK));
    const stats = await file.stat();
    const problem = problemOfKind(stats);
    if (problem !== undefined) throw new LogstrataError('io', `cannot read ${path}: ${problem}`, { path });
    const readInto = async (target: Uint8Array, from: number, at: number) =>
      (await file.read(target, from, target.length - from, at)).bytesRead;
    return await use(new ForeignSource(path, stats.size, readInto));
  } catch (error) {
    if (!(error instanceof FormatError)) throw fileSystemError(error, 'read', path);
    const { offset, message } = error;
    throw new DamageError(`${path}, at byte ${offset}: ${message}`, { path, offset });
  } finally {
    await handle?.close();
  }
}

/** Calls `read` for bytes at `offset` of a file; adds the offset to that of a `FormatError`. */
export function withOffset<T>(offset: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) throw new FormatError(error.message, offset + error.offset);
    throw error;
  }
}
