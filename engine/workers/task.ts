import { DamageError, LogstrataError, type ErrorCode } from '../core/errors.js';
import type { ScratchPlace } from '../core/shared-memory.js';

/** The result of a task, and the buffers in it that are moved to the caller instead of being copied. */
export interface Finished<Result> {
  readonly result: Result;
  readonly transfer: readonly ArrayBuffer[];
}

/** Work for a thread: a function that a module exports. Jobs and results must be plain data, because they are copied between threads. */
export interface Task<Job, Result> {
  /** URL of the built module, which the thread imports. */
  readonly module: URL;
  /** The name that the module exports the function by; `work` if absent. */
  readonly name?: string;
  /** Whether a job takes tens of milliseconds or more. Its thread then gets no further job before it has answered. */
  readonly isLong?: boolean;
  /** The same function, for running it on the calling thread. */
  readonly work: (job: Job) => Finished<Result> | Promise<Finished<Result>>;
}

const root = new URL('../../', import.meta.url);

/**
 * URL of the built file of one of our modules, given its `import.meta.url`. Threads cannot run TypeScript. If the sources run unbuilt, as
 * in tests, this is the file that `npm run build` has left in `dist`.
 */
export function builtModule(url: string): URL {
  if (!url.endsWith('.ts')) return new URL(url);
  return new URL(`dist/${url.slice(root.href.length).replace(/\.ts$/, '.js')}`, root);
}

/**
 * A task of a module.
 *
 * @param url the module's `import.meta.url`
 * @param exported the function under the name that the module exports it by
 * @param isLong see `Task.isLong`
 */
export function taskIn<Job, Result>(
  url: string,
  exported: Readonly<Record<string, Task<Job, Result>['work']>>,
  isLong = false,
): Task<Job, Result> {
  const [[name, work]] = Object.entries(exported) as [[string, Task<Job, Result>['work']]];
  return { module: builtModule(url), name, isLong, work };
}

/** The distinct buffers of arrays, for a transfer. Nobody else may use them. */
export function buffersOf(arrays: Iterable<ArrayBufferView<ArrayBufferLike>>): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of arrays) if (buffer instanceof ArrayBuffer) buffers.add(buffer);
  return [...buffers];
}

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
  if (code === undefined) {
    const error = new Error(message);
    if (stack !== undefined) error.stack = stack;
    return error;
  }
  if (damage === undefined) return new LogstrataError(code, message, { path, offset });
  return new DamageError(message, { path, offset, ...damage });
}
