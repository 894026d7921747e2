/** Work under way: what it will give, and who takes it. */
interface Pending {
  readonly deliver: () => Promise<void>;
  /** Waits for it and lets go of what it gives. */
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
   * Begins `start` once there is room. Throws what earlier work or its consumer throws. `discard` lets go of a result that
   * nobody consumes.
   */
  async add<T>(
    start: () => Promise<T>,
    consume: (result: T) => Promise<void>,
    discard: (result: T) => void = () => {},
  ): Promise<void> {
    if (this.depth === 0) return consume(await start());
    while (this.pending.length >= this.depth) await this.deliverFirst();
    const result = start();
    // A failure is told when its turn comes, which may be never after another.
    result.catch(() => {});
    this.pending.push({
      deliver: async () => consume(await result),
      discard: () => result.then(discard, () => {}),
    });
  }

  private async deliverFirst(): Promise<void> {
    await this.pending.shift()!.deliver();
  }

  /** Has everything consumed that was begun. */
  async drain(): Promise<void> {
    while (this.pending.length > 0) await this.deliverFirst();
  }

  /** Waits for what was begun and has none of it consumed. */
  async drop(): Promise<void> {
    const { pending } = this;
    this.pending = [];
    for (const { discard } of pending) await discard();
  }
}
