import { DamageError, LogstrataError, type ErrorCode } from '../terms/errors.js';

/** A job on its way to a thread. */
export interface Request {
  readonly id: number;
  /** Address of the module that exports `work`. */
  readonly module: string;
  readonly job: unknown;
}

/** What came of a job. */
export type Reply =
  { readonly id: number; readonly result: unknown } | { readonly id: number; readonly failure: Failure };

/** An error as it crosses between threads, which would strip our classes of what makes them ours. */
export interface Failure {
  /** Absent for a bug. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
  readonly damage?: { readonly rowGroup?: number | undefined; readonly column?: string | undefined };
}

/** Describes whatever was thrown. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, stack } = error;
  if (!(error instanceof LogstrataError)) return { message, stack };
  const { code, path, offset } = error;
  if (!(error instanceof DamageError)) return { code, message, stack, path, offset };
  return { code, message, stack, path, offset, damage: { rowGroup: error.rowGroup, column: error.column } };
}

/** The error that was thrown in the thread: of the same class where it was an expected one. */
export function errorOf(failure: Failure): Error {
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
