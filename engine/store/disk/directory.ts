import { closing } from '../../core/waiting.js';
import type { Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { LogstrataError, type ErrorCode, assert } from '../../core/errors.js';

/**
 * The file port: everything that storage needs from a file system. One test suite runs against each implementation (`real-directory`, and
 * the tests' `memory-directory`, which simulates crashes and faults).
 *
 * Paths are relative to the archive's folder, with `/`, never absolute and never with `..`. Failures are `LogstrataError`s with the path:
 * `not_found`, `exists`, `disk_full`, `io`.
 */
export interface Directory {
  /** The folder's location, for messages: an absolute path, or a name for a folder in memory. */
  readonly location: string;
  /** Absolute path of `path` in the file system, for threads that read the file themselves. Absent if only this thread can read the files. */
  absolutePath?(path: string): string;
  /**
   * Set if files are written once, as a whole (objects). `create` then replaces a file of the same name in one step when the new one is
   * synced, and there is no `openWrite`. If absent, `create` throws `exists` for a name that is taken.
   */
  readonly replacesWhole?: true;
  /** Names of the files and folders in `path`, sorted. Empty if `path` does not exist. */
  list(path: string): Promise<string[]>;
  /** Whether `path` exists and is a folder. */
  isFolder(path: string): Promise<boolean>;
  /** Creates `path` and missing parents, durably. */
  makeDirectory(path: string): Promise<void>;
  /**
   * Opens a file for reading at any position. Throws `not_found`, and `io` for anything but a regular file. Never blocks, not even on a
   * named pipe.
   */
  openRead(path: string): Promise<ReadableFile>;
  /**
   * Creates a new file. Throws `exists` if there is one. The file is durable once `sync` and `syncDirectory` have returned. `mode` holds
   * the permission bits, by default 0644.
   */
  create(path: string, mode?: number): Promise<WritableFile>;
  /** Opens an existing file for writing at any position. Throws `not_found`. */
  openWrite(path: string): Promise<WritableFile>;
  /** Makes a hard link. Throws `exists` if the name `to` is taken, which makes publishing a manifest exclusive. */
  link(from: string, to: string): Promise<void>;
  /** Moves a file or folder. Replaces a file at `to`. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file. No error if it does not exist. */
  remove(path: string): Promise<void>;
  /** Removes a folder and everything in it. No error if it does not exist. */
  removeDirectory(path: string): Promise<void>;
  /** Makes the names in a folder durable (fsync of the folder). */
  syncDirectory(path: string): Promise<void>;
  /** Size of a file in bytes. Throws `not_found`. */
  size(path: string): Promise<number>;
  /** Size of the disk, and the space that is free for this process; null if the file system does not tell. */
  diskSpace(): Promise<DiskSpace | null>;
}

/** Size of a disk, and what is free for this process. */
export interface DiskSpace {
  readonly sizeBytes: number;
  readonly freeBytes: number;
}

/** A file that is open for reading. */
export interface ReadableFile {
  readonly path: string;
  /** Current length of the file in bytes. */
  size(): Promise<number>;
  /**
   * Reads `length` bytes from `position` on; fewer only at the end of the file. The result belongs to the caller and starts at an 8-byte
   * aligned offset of its ArrayBuffer.
   */
  read(position: number, length: number): Promise<Uint8Array>;
  /**
   * Reads into `target`, which may be in shared memory. Returns the number of bytes read; less than `target` has room for only at the end
   * of the file.
   */
  readInto(position: number, target: Uint8Array): Promise<number>;
  close(): Promise<void>;
}

/** A file that is open for writing. */
export interface WritableFile {
  readonly path: string;
  /** Writes all of `bytes` at `position`, or throws. After a failure the content there is undefined. */
  write(position: number, bytes: Uint8Array): Promise<void>;
  /** Cuts the file to `length` bytes. Durable once `sync` has returned. */
  truncate(length: number): Promise<void>;
  /** Makes the content durable (fdatasync). After a failure, nothing written since the last successful call can be relied on. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

interface SystemError extends Error {
  readonly code: string;
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}

/** Whether `error` is a system error with one of these codes (`ENOENT`, …). */
export function hasSystemCode(error: unknown, ...codes: readonly string[]): boolean {
  return isSystemError(error) && codes.includes(error.code);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return process.getuid === undefined ? 'this user' : `user ${process.getuid()}`;
  }
}

function describe(code: string, action: string, path: string): [ErrorCode, string] {
  switch (code) {
    case 'ENOSPC':
      return ['disk_full', `cannot ${action} ${path}: the disk is full; free some space and try again`];
    case 'EDQUOT':
      return ['disk_full', `cannot ${action} ${path}: ${userName()} is over the disk quota`];
    case 'EEXIST':
    case 'ENOTEMPTY':
      return ['exists', `cannot ${action} ${path}: it already exists`];
    case 'ENOENT':
      return ['not_found', `cannot ${action} ${path}: no such file or folder`];
    case 'EMFILE':
    case 'ENFILE':
      return ['io', `cannot ${action} ${path}: too many open files; raise the limit (ulimit -n)`];
    case 'EACCES':
    case 'EPERM':
      return ['io', `cannot ${action} ${path}: ${userName()} has no permission; check its owner and mode`];
    case 'EROFS':
      return ['io', `cannot ${action} ${path}: the file system is mounted read-only`];
    case 'EIO':
      return ['io', `cannot ${action} ${path}: the disk reported an error; look at the system log (dmesg)`];
    case 'EISDIR':
      return ['io', `cannot ${action} ${path}: it is a folder, a file was expected`];
    case 'ENOTDIR':
      return ['io', `cannot ${action} ${path}: a part of the path is not a folder`];
    case 'EFBIG':
      return ['io', `cannot ${action} ${path}: the file system does not support files of this size`];
    case 'ENOTSUP':
    case 'EOPNOTSUPP':
    case 'ENOSYS':
      return [
        'io',
        `cannot ${action} ${path}: the file system does not support this (hard links are needed)`,
      ];
    default:
      return ['io', `cannot ${action} ${path}: ${code}`];
  }
}

/** What is wrong with something that should be a regular file; undefined for a regular file. */
export function problemOfKind(stats: Stats): string | undefined {
  if (stats.isFile()) return undefined;
  const kind = stats.isDirectory() ? 'a folder' : stats.isFIFO() ? 'a named pipe' : 'not a regular file';
  return `it is ${kind}, a file was expected`;
}

/**
 * Converts a failed system call to a `LogstrataError` whose message tells a person what to do. Returns `LogstrataError`s, and errors that
 * are not system errors, unchanged.
 */
export function fileSystemError(error: unknown, action: string, path: string, offset?: number): unknown {
  if (!isSystemError(error) || error instanceof LogstrataError) return error;
  const [code, message] = describe(error.code, action, path);
  return new LogstrataError(code, message, { path, offset, cause: error });
}

/**
 * Splits a path of the file port (`directory.ts`), which is relative, with `/` and without `..`. '' and '.' are the archive's folder.
 * Asserts that the path is valid: all names are our own or were checked before (`isAgentName`).
 */
export function pathParts(path: string): string[] {
  if (path === '' || path === '.') return [];
  const parts = path.split('/');
  for (const part of parts) {
    assert(
      part !== '' && part !== '.' && part !== '..' && !part.includes('\0') && !part.includes('\\'),
      `"${path}" is not a plain relative path`,
    );
  }
  return parts;
}

/** The parent folder of `path`; '' for the archive's folder. */
export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** The path of `name` in the folder `path`, which may be ''. */
export function joinPath(path: string, name: string): string {
  return path === '' || path === '.' ? name : `${path}/${name}`;
}

/** Writes a new file, and makes its content durable. Throws like `Directory.create`. */
export async function writeWhole(directory: Directory, path: string, bytes: Uint8Array): Promise<void> {
  await closing(directory.create(path), async (file) => {
    await file.write(0, bytes);
    await file.sync();
  });
}
