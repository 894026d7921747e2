import { DamageError, isLogstrataError, LogstrataError, type ErrorCode } from '../../terms/errors.js';

/** An error as JSON carries it to another process. `code` is null for a bug of ours. */
export interface EncodedError {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
}

// A record, so that a new code fails to compile until it is named here.
const errorCodes: Readonly<Record<ErrorCode, true>> = {
  invalid: true,
  damaged: true,
  not_found: true,
  exists: true,
  locked: true,
  conflict: true,
  limit: true,
  disk_full: true,
  unavailable: true,
  io: true,
  cancelled: true,
  timeout: true,
  unsupported: true,
  closed: true,
  absent: true,
};

/** What of `error` another process is told. */
export function encodeError(error: unknown): EncodedError {
  if (isLogstrataError(error)) {
    return { code: error.code, message: error.message, path: error.path, offset: error.offset };
  }
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

/** The error that another process met, to be thrown here. */
export function decodeError(value: unknown): Error {
  const { code, message, path, offset } = (value ?? {}) as Partial<Record<keyof EncodedError, unknown>>;
  const text = typeof message === 'string' ? message : 'it gave no reason';
  const place = {
    ...(typeof path === 'string' ? { path } : {}),
    ...(typeof offset === 'number' ? { offset } : {}),
  };
  if (code === 'damaged') return new DamageError(text, place);
  if (typeof code === 'string' && Object.hasOwn(errorCodes, code)) {
    return new LogstrataError(code as ErrorCode, text, place);
  }
  return new Error(`the process that writes failed: ${text}`);
}
