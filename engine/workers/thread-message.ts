import { DamageError, LogstrataError, type ErrorCode } from '../terms/errors.js';

import type { ScratchPlace } from '../memory/shared-memory.js';

/** Jobs of one owner that are sent to a thread together, and the memory that kernels may use meanwhile. */
export interface JobMessage {
  readonly jobs: readonly JobRequest[];
  readonly scratch: ScratchPlace;
}

/** A job that is sent to a thread. */
export interface JobRequest {
  readonly id: number;
  /** URL of the module, and the name that it exports the function of the task by. */
  readonly module: string;
  readonly name: string;
  readonly job: unknown;
}

/** The result or failure of a job, and how long it took. */
export type JobReply = { readonly id: number; readonly ms: number } & (
  { readonly result: unknown } | { readonly failure: SentError }
);

/** An error as plain data, because messages between threads preserve only the message and stack of an error. */
export interface SentError {
  /** Undefined for an error that is no `LogstrataError`, which is a bug. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
  readonly damage?: { readonly rowGroup?: number | undefined; readonly column?: string | undefined };
}

/** Converts a thrown value to plain data. */
export function failureOf(error: unknown): SentError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, stack } = error;
  if (!(error instanceof LogstrataError)) return { message, stack };
  const { code, path, offset } = error;
  if (!(error instanceof DamageError)) return { code, message, stack, path, offset };
  return { code, message, stack, path, offset, damage: { rowGroup: error.rowGroup, column: error.column } };
}

/** Converts a received failure to an error. A `LogstrataError` or `DamageError` keeps its class and fields. */
export function errorOf(failure: SentError): Error {
  const { code, message, stack, path, offset, damage } = failure;
  const place = { ...(path === undefined ? {} : { path }), ...(offset === undefined ? {} : { offset }) };
  if (code === undefined) {
    const error = new Error(message);
    if (stack !== undefined) error.stack = stack;
    return error;
  }
  if (damage === undefined) return new LogstrataError(code, message, place);
  const { rowGroup, column } = damage;
  return new DamageError(message, {
    ...place,
    ...(rowGroup === undefined ? {} : { rowGroup }),
    ...(column === undefined ? {} : { column }),
  });
}
