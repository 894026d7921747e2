/** A lock for asynchronous work. Callers get it one at a time, in the order in which they asked. */
export class Mutex {
  private tail: Promise<void> = Promise.resolve();

  /** Waits for the lock and takes it. Returns a function that releases it; further calls of that do nothing. */
  async acquire(): Promise<() => void> {
    let release!: () => void;
    const before = this.tail;
    this.tail = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return release;
  }

  /** Runs `work` while holding the lock. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
