/** Bounds how much asynchronous work of one kind runs at once. Callers get their turn in the order in which they asked. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param most how many may run at once; 1 makes it a lock */
  constructor(most: number) {
    this.#free = most;
  }

  /** Waits for a turn and takes it. Returns a function that gives it back; further calls of that do nothing. */
  async acquire(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    };
  }

  /** Runs `work` in a turn. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
