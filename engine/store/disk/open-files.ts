import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { LogstrataError } from '../../terms/errors.js';
import { openFilesIdleMs, openFilesMax } from '../../terms/limits.js';
import { fileSystemError, hasSystemCode, problemOfKind } from './file-system-error.js';
import { leftName } from './left-name.js';

interface OpenFile {
  readonly descriptor: number;
  usedMs: number;
}

/**
 * Files that a worker thread keeps open between its jobs, because opening one takes longer than reading a piece that is in
 * the system's memory: up to a bound, the least recently used are closed first, and all that have not been used for a while,
 * so that a removed file gives its disk space back. Everything here waits for the disk: it is not for the main thread, but where that has
 * nothing else to do.
 */
export class OpenFiles {
  readonly #filesMax: number;
  /** By absolute path, in the order of their last use. */
  readonly #files = new Map<string, OpenFile>();
  /** The path that was read last. */
  #newest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(filesMax: number = openFilesMax) {
    this.#filesMax = filesMax;
  }

  /** How many are open. */
  get count(): number {
    return this.#files.size;
  }

  /**
   * Reads from `position` on until `target` is full or the file ends; returns the bytes read. Throws `not_found` or `io` with
   * the path.
   */
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
    // Many reads of one file follow one another, and each takes hardly longer than this.
    if (known !== undefined && path === this.#newest) return known.descriptor;
    this.#newest = path;
    if (known !== undefined) {
      this.#files.delete(path);
      this.#files.set(path, known);
      known.usedMs = performance.now();
      return known.descriptor;
    }
    while (this.#files.size >= this.#filesMax) this.#closeOldest();
    const descriptor = this.#openNew(path);
    this.#files.set(path, { descriptor, usedMs: performance.now() });
    this.#timer ??= setInterval(() => this.#closeUnused(), openFilesIdleMs).unref();
    return descriptor;
  }

  /** Where the process has all the files that it may have, others are closed for this one. */
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
    const sinceMs = performance.now() - openFilesIdleMs;
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

/** Opens a file by its name, or, of a segment, where it waits for its removal. */
function openThere(path: string): number {
  const left = leftName(path);
  try {
    return openRegular(path);
  } catch (error) {
    if (left === null || !hasSystemCode(error, 'ENOENT')) throw error;
    try {
      return openRegular(left);
    } catch {
      // What is told is the name that was asked for.
      throw error;
    }
  }
}

/** Opens a file to read. Throws `io` for what is no regular file, and never waits for it. */
function openRegular(path: string): number {
  // Without O_NONBLOCK, opening a named pipe waits for a writer, and the thread with it.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const problem = problemOfKind(fstatSync(descriptor));
  if (problem === undefined) return descriptor;
  closeSync(descriptor);
  throw new LogstrataError('io', `cannot open ${path}: ${problem}`, { path });
}

/** The files of this thread. */
export const openFiles = new OpenFiles();
