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

/** The distinct buffers of arrays, for a transfer. Nobody else may use them. */
export function buffersOf(arrays: Iterable<ArrayBufferView<ArrayBufferLike>>): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of arrays) if (buffer instanceof ArrayBuffer) buffers.add(buffer);
  return [...buffers];
}
