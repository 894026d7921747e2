import { DamageError, isLogstrataError, LogstrataError, type ErrorCode } from '../../terms/errors.js';

/** An error encoded as JSON for another process. `code` is null for an unexpected error. */
export interface EncodedError {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
}

// A record of all codes, so that a new code fails to compile until it is added here.
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

/** Encodes an error for another process. */
export function encodeError(error: unknown): EncodedError {
  if (isLogstrataError(error)) {
    return { code: error.code, message: error.message, path: error.path, offset: error.offset };
  }
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

/** Decodes an error of another process. */
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
