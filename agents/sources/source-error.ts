import { userInfo } from 'node:os';
import { type ErrorCode, type ErrorPlace, LogstrataError } from '../../engine/index.js';

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
