import type { Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { LogstrataError, type ErrorCode } from '../../terms/errors.js';

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
  return new LogstrataError(code, message, {
    path,
    cause: error,
    ...(offset === undefined ? {} : { offset }),
  });
}
