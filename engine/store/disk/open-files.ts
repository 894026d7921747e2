import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { LogstrataError } from '../../core/errors.js';
import { idleMs, openFilesMax } from '../../core/limits.js';
import { fileSystemError, hasSystemCode, problemOfKind } from './directory.js';
import { removalName } from './real-directory.js';
import type { MemoryLease } from '../../core/memory-lease.js';
import type { MemoryRange } from '../../core/shared-memory.js';

interface OpenFile {
  readonly descriptor: number;
  usedMs: number;
}

/**
 * Files that a worker thread keeps open between its jobs, because opening a file takes longer than reading a piece of it that is in the
 * page cache. Beyond a limit the least recently used file is closed. Files that were unused for a while are closed too, so that a removed
 * file releases its disk space. All calls block on the disk: use this on the main thread only where it has nothing else to do.
 */
export class OpenFiles {
  /** By absolute path, least recently used first. */
  readonly #files = new Map<string, OpenFile>();
  /** The path that was read last. */
  #newest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly filesMax: number = openFilesMax) {}

  /** Number of open files. */
  get count(): number {
    return this.#files.size;
  }

  /** Reads from `position` on until `target` is full or the file ends. Returns the number of bytes read. Throws `not_found` or `io` with the path. */
  read(path: string, position: number, target: Uint8Array): number {
    const descriptor = this.#open(path);
    try {
      let done = 0;
      while (done < target.length) {
        const bytes = readSync(descriptor, target, done, target.length - done, position + done);
        if (bytes === 0) break;
        done += bytes;
      }
      return done;
    } catch (error) {
      throw fileSystemError(error, 'read', path);
    }
  }

  #open(path: string): number {
    const known = this.#files.get(path);
    // Fast path: reads of one file usually follow each other, and a read takes hardly longer than updating the order of use.
    if (known !== undefined && path === this.#newest) return known.descriptor;
    this.#newest = path;
    if (known !== undefined) {
      this.#files.delete(path);
      this.#files.set(path, known);
      known.usedMs = performance.now();
      return known.descriptor;
    }
    while (this.#files.size >= this.filesMax) this.#closeOldest();
    const descriptor = this.#openNew(path);
    this.#files.set(path, { descriptor, usedMs: performance.now() });
    this.#timer ??= setInterval(() => this.#closeUnused(), idleMs).unref();
    return descriptor;
  }

  /** Opens a file. If the process has reached its limit on open files, closes others first. */
  #openNew(path: string): number {
    for (;;) {
      try {
        return openThere(path);
      } catch (error) {
        if (!hasSystemCode(error, 'EMFILE', 'ENFILE') || this.#files.size === 0)
          throw fileSystemError(error, 'open', path);
      }
      this.#closeOldest();
    }
  }

  #closeOldest(): void {
    const [path] = this.#files.keys();
    if (path !== undefined) this.#close(path);
  }

  #closeUnused(): void {
    const sinceMs = performance.now() - idleMs;
    for (const [path, { usedMs }] of this.#files) if (usedMs < sinceMs) this.#close(path);
    if (this.#files.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #close(path: string): void {
    const file = this.#files.get(path)!;
    this.#files.delete(path);
    closeSync(file.descriptor);
  }

  /** Closes every file. */
  close(): void {
    for (const path of [...this.#files.keys()]) this.#close(path);
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Opens a file under its name. A segment is also found under the name by which it waits for its removal. */
function openThere(path: string): number {
  const renamed = removalName(path);
  try {
    return openRegular(path);
  } catch (error) {
    if (renamed === null || !hasSystemCode(error, 'ENOENT')) throw error;
    try {
      return openRegular(renamed);
    } catch {
      // Report the error for the name that was asked for.
      throw error;
    }
  }
}

/** Opens a regular file for reading. Throws `io` for anything else. Never blocks. */
function openRegular(path: string): number {
  // Without O_NONBLOCK, opening a named pipe would block the thread until there is a writer.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const problem = problemOfKind(fstatSync(descriptor));
  if (problem === undefined) return descriptor;
  closeSync(descriptor);
  throw new LogstrataError('io', `cannot open ${path}: ${problem}`, { path });
}

/** The open files of this thread. */
export const openFiles = new OpenFiles();

/** The lent memory of a page of rows. It is freed once all rows have been copied or written elsewhere. */
export class PageMemory {
  #rowsLeft: number;

  constructor(
    private readonly lease: MemoryLease,
    rows: number,
    private readonly onFree: (memory: PageMemory) => void,
  ) {
    this.#rowsLeft = rows;
  }

  /** The range of memory in which another thread finds the page, as `packBatch` has written it. */
  get range(): MemoryRange {
    return this.lease.range;
  }

  /** Marks `rows` more rows as no longer needed. */
  done(rows: number): void {
    this.#rowsLeft -= rows;
    if (this.#rowsLeft <= 0) this.free();
  }

  /** Frees the memory at once. */
  free(): void {
    this.lease.free();
    this.onFree(this);
  }
}
