/** Work in progress. */
interface Pending {
  /** Waits for the result and passes it to its consumer. */
  readonly deliver: () => Promise<void>;
  /** Waits for the result and discards it. */
  readonly discard: () => Promise<void>;
}

/**
 * Runs asynchronous work ahead of its consumer. Results are consumed one at a time, in the order in which the work was started. At most
 * `depth` pieces of work are in progress; with 0, each result is consumed before the next piece starts.
 */
export class InOrder {
  private pending: Pending[] = [];

  /** @param depth may be changed before work is added */
  constructor(public depth: number) {}

  /**
   * Calls `start` once fewer than `depth` pieces of work are in progress. Throws the errors of earlier work and of its consumer. `discard`
   * is called with a result that is not consumed.
   */
  async add<T>(
    start: () => Promise<T>,
    consume: (result: T) => Promise<void>,
    discard: (result: T) => void = () => {},
  ): Promise<void> {
    if (this.depth === 0) return consume(await start());
    while (this.pending.length >= this.depth) await this.deliverFirst();
    const result = start();
    // Prevents an unhandled rejection: `deliver` throws the failure, but is never called if earlier work has failed.
    result.catch(() => {});
    this.pending.push({
      deliver: async () => consume(await result),
      discard: () => result.then(discard, () => {}),
    });
  }

  private async deliverFirst(): Promise<void> {
    await this.pending.shift()!.deliver();
  }

  /** Waits until all work has ended and its results are consumed. */
  async drain(): Promise<void> {
    while (this.pending.length > 0) await this.deliverFirst();
  }

  /** Waits until all work has ended, and discards its results. */
  async drop(): Promise<void> {
    const { pending } = this;
    this.pending = [];
    for (const { discard } of pending) await discard();
  }
}

/**
 * Calls `work` with each item, for up to `depth` items at once. Returns the results in the order of the items. After a failure no more work
 * is started; the failure is thrown when the work in progress has ended.
 */
export async function mapInOrder<Item, Result>(
  items: readonly Item[],
  depth: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const running = new InOrder(depth);
  try {
    for (const [i, item] of items.entries()) {
      await running.add(
        () => work(item, i),
        async (result) => void results.push(result),
      );
    }
    await running.drain();
  } finally {
    await running.drop();
  }
  return results;
}
