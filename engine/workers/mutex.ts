/** Lets one holder in at a time, in the order in which they asked. */
export class Mutex {
  private tail: Promise<void> = Promise.resolve();

  /** Waits for its turn; the result ends it, and does nothing the second time. */
  async acquire(): Promise<() => void> {
    let release!: () => void;
    const before = this.tail;
    this.tail = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return release;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
