/**
 * Every failure that a user or the machine can cause is a `LogstrataError` with a code, and says what,
 * where and what was expected. A broken promise of our own code is an assertion (`assert.ts`) instead.
 */
export type ErrorCode =
  /** The caller asked for something that makes no sense: a bad filter, a bad argument. */
  | 'invalid'
  /** Stored bytes are not what was written. Never answered over; see `DamageError`. */
  | 'damaged'
  /** A file, folder or agent is not there. */
  | 'not_found'
  /** A file that must be new is there already. */
  | 'exists'
  /** Another process is the writer of this data folder. */
  | 'locked'
  /** Another process published a manifest although we hold the lock. */
  | 'conflict'
  /** A bound of `limits.ts` would be exceeded. */
  | 'limit'
  | 'disk_full'
  /** Any other failure of the file system. */
  | 'io'
  /** The caller went away, or the process is stopping. */
  | 'cancelled'
  | 'timeout'
  /** Written by a newer version than this one. */
  | 'unsupported'
  | 'closed'
  /** Records lie in another system, which can't be asked for all of them now. */
  | 'unavailable'
  /** Bytes of an object that are not on this machine yet. They are fetched, and what needs them is done again: nobody is told. */
  | 'absent';

export interface ErrorPlace {
  /** File or folder at fault. */
  readonly path?: string;
  /** Byte offset in `path`. */
  readonly offset?: number;
  readonly cause?: unknown;
}

/** An expected failure: has a code for programs and a sentence for people. */
export class LogstrataError extends Error {
  readonly code: ErrorCode;
  readonly path: string | undefined;
  readonly offset: number | undefined;

  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}) {
    super(message, place.cause === undefined ? undefined : { cause: place.cause });
    this.name = 'LogstrataError';
    this.code = code;
    this.path = place.path;
    this.offset = place.offset;
  }
}

/** Stored bytes that fail their checksum or their format. `rowGroup` and `column` say what is lost, where known. */
export class DamageError extends LogstrataError {
  readonly rowGroup: number | undefined;
  readonly column: string | undefined;

  constructor(message: string, place: ErrorPlace & { rowGroup?: number; column?: string }) {
    super('damaged', message, place);
    this.name = 'DamageError';
    this.rowGroup = place.rowGroup;
    this.column = place.column;
  }
}

/** Whether `error` is an expected failure; anything else is a bug of ours or of a dependency. */
export function isLogstrataError(error: unknown): error is LogstrataError {
  return error instanceof LogstrataError;
}
