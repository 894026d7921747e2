/**
 * Resolves to the result of `coming`, or to `deadline` if that takes longer than `ms`. A later rejection is ignored here, so the caller
 * must await `coming` again to see it. Each call adds a reaction to `coming` that stays until it settles, so do not call this repeatedly in
 * a loop for one promise.
 */
export function orDeadline<T>(coming: Promise<T>, ms: number): Promise<T | 'deadline'> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve('deadline'), Math.max(0, ms));
    void coming.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/**
 * Runs all steps in order, even after one fails, and then throws the first failure. For releasing several resources, so that a failure to
 * release one does not keep the others.
 */
export async function everyStep(steps: Iterable<() => unknown>): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Calls `use` with what was opened, and closes it. */
export async function closing<Opened extends { close(): Promise<void> }, Result>(
  opening: Promise<Opened>,
  use: (opened: Opened) => Promise<Result>,
): Promise<Result> {
  const opened = await opening;
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

/** Work that its callers share: who asks for it while it is under way gets the same result. */
export class SharedWork<Parameters extends readonly unknown[], Result> {
  #running: Promise<Result> | null = null;
  #sinceMs = 0;

  constructor(private readonly work: (...parameters: Parameters) => Promise<Result>) {}

  /** How long the work under way has lasted (ms); 0 if none is. */
  get runningMs(): number {
    return this.#running === null ? 0 : performance.now() - this.#sinceMs;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Begins the work, or joins what is under way. */
  run(...parameters: Parameters): Promise<Result> {
    if (this.#running !== null) return this.#running;
    this.#sinceMs = performance.now();
    this.#running = this.work(...parameters).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Resolves when no work is under way, whatever has come of it. */
  async settled(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }
}

/** Makes something at the first call, and returns the same at further calls. What could not be made is tried again at the next call. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    }));
}
