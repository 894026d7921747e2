/** A violated invariant of our own code. It is a bug to report, never a user's mistake. */
export class AssertionError extends Error {
  constructor(message: string) {
    super(`${message} (this is a bug in logstrata)`);
    this.name = 'AssertionError';
  }
}

/** Throws an `AssertionError` unless `condition` is true. For invariants only; invalid user input gets a `LogstrataError`. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** For the default case of a `switch` over a closed union: a member that is not handled fails to compile. */
export function assertNever(value: never): never {
  throw new AssertionError(`unexpected value ${JSON.stringify(value)}`);
}

/**
 * The code of a `LogstrataError`. Every failure that a user or the machine can cause is a `LogstrataError`. Its message says what failed,
 * where, and what was expected. A violated invariant of our own code is an `AssertionError` (`assert.ts`) instead.
 */
export type ErrorCode =
  /** The caller asked for something impossible, such as a malformed filter or argument. */
  | 'invalid'
  /** Stored bytes are not what was written; see `DamageError`. Queries fail rather than leave damaged records out. */
  | 'damaged'
  /** A file, folder or agent does not exist. */
  | 'not_found'
  /** The record at a cursor was rewritten, so that a walk can't go on from there. */
  | 'gone'
  /** A file that must be new exists already. */
  | 'exists'
  /** Another process is the writer of this data folder. */
  | 'locked'
  /** The state that an operation was based on has changed: another process or commit was faster. */
  | 'conflict'
  /** A limit of `limits.ts` would be exceeded. */
  | 'limit'
  | 'disk_full'
  /** Any other failure of the file system. */
  | 'io'
  /** The caller has gone, or the process is stopping. */
  | 'cancelled'
  | 'timeout'
  /** The format or version is not supported, or an optional package is not installed. */
  | 'unsupported'
  | 'closed'
  /** Records are in another system, which cannot answer for all of them now. */
  | 'unavailable'
  /** Bytes of an object are not on this machine yet. Internal: they are fetched and the operation is repeated. */
  | 'absent';

/** Where and why an error occurred. */
export interface ErrorPlace {
  /** The file or folder that the error is about. */
  readonly path?: string | undefined;
  /** Byte offset in `path`. */
  readonly offset?: number | undefined;
  readonly cause?: unknown;
}

/** An expected failure, with a code for programs and a message for people. */
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

/** Stored bytes that fail their checksum or have an invalid format. `rowGroup` and `column` say what is lost, if known. */
export class DamageError extends LogstrataError {
  readonly rowGroup: number | undefined;
  readonly column: string | undefined;

  constructor(
    message: string,
    place: ErrorPlace & { rowGroup?: number | undefined; column?: string | undefined },
  ) {
    super('damaged', message, place);
    this.name = 'DamageError';
    this.rowGroup = place.rowGroup;
    this.column = place.column;
  }
}

/** Whether `error` is an expected failure. Anything else is a bug, ours or of a dependency. */
export function isLogstrataError(error: unknown): error is LogstrataError {
  return error instanceof LogstrataError;
}
