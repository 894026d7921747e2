/** What a task gives back, and the buffers in it that move to the caller instead of being copied. */
export interface Finished<Result> {
  readonly result: Result;
  readonly transfer: readonly ArrayBuffer[];
}

/**
 * Work that a thread can do: a function of a module that exports it as `work`. Jobs and results must be plain data, since
 * they are copied between threads.
 */
export interface Task<Job, Result> {
  /** The built module, which the thread imports. */
  readonly module: URL;
  /** Whether it takes tens of milliseconds or more. No further job is then sent to its thread before it has answered. */
  readonly isLong?: boolean;
  /** The same function, for doing the work on the thread that asks. */
  readonly work: (job: Job) => Finished<Result> | Promise<Finished<Result>>;
}

const root = new URL('../../', import.meta.url);

/**
 * The built file of one of our modules, given its `import.meta.url`. Threads can't run TypeScript. Where the sources run unbuilt, as in
 * tests, this is the file that `npm run build` has left in `dist`.
 */
export function builtModule(url: string): URL {
  if (!url.endsWith('.ts')) return new URL(url);
  return new URL(`dist/${url.slice(root.href.length).replace(/\.ts$/, '.js')}`, root);
}

/** The distinct buffers of arrays that nobody else uses, for a transfer. */
export function buffersOf(arrays: Iterable<ArrayBufferView<ArrayBufferLike>>): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of arrays) if (buffer instanceof ArrayBuffer) buffers.add(buffer);
  return [...buffers];
}
