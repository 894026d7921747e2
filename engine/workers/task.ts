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
  /** Whether it takes tens of milliseconds and more: another job then waits for the next thread that is free, not behind it. */
  readonly isLong?: boolean;
  /** The same function, for doing the work on the thread that asks. */
  readonly work: (job: Job) => Finished<Result> | Promise<Finished<Result>>;
}

const root = new URL('../../', import.meta.url);

/**
 * The built file of a module of ours, given its `import.meta.url`. Threads can't run TypeScript: where the sources run by
 * themselves, as in tests, the files that `npm run build` left in `dist` stand for them.
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
