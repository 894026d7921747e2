/** Work under way. */
interface Pending {
  /** Waits for the result and has it consumed. */
  readonly deliver: () => Promise<void>;
  /** Waits for the result and discards it. */
  readonly discard: () => Promise<void>;
}

/**
 * Work that goes on while its consumer does other things: results are consumed one at a time, in the order in which the work
 * was begun, whichever is done first. At most `depth` pieces are under way; with 0 each is consumed before the next begins.
 */
export class InOrder {
  private pending: Pending[] = [];

  constructor(private readonly depth: number) {}

  /**
   * Calls `start` once fewer than `depth` pieces of work are under way. Throws what earlier work or its consumer throws. `discard` is given
   * a result that is not consumed.
   */
  async add<T>(
    start: () => Promise<T>,
    consume: (result: T) => Promise<void>,
    discard: (result: T) => void = () => {},
  ): Promise<void> {
    if (this.depth === 0) return consume(await start());
    while (this.pending.length >= this.depth) await this.deliverFirst();
    const result = start();
    // A failure is thrown by `deliver`. After the failure of earlier work `deliver` may never be called.
    result.catch(() => {});
    this.pending.push({
      deliver: async () => consume(await result),
      discard: () => result.then(discard, () => {}),
    });
  }

  private async deliverFirst(): Promise<void> {
    await this.pending.shift()!.deliver();
  }

  /** Waits for all work under way and has its results consumed. */
  async drain(): Promise<void> {
    while (this.pending.length > 0) await this.deliverFirst();
  }

  /** Waits for all work under way and discards its results. */
  async drop(): Promise<void> {
    const { pending } = this;
    this.pending = [];
    for (const { discard } of pending) await discard();
  }
}
