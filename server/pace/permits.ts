/** A counting semaphore: bounds how much of one kind of work runs at once. Waiting callers are served in the order of their calls. */
export class Permits {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Takes a permit. Returns undefined if one is free, otherwise a promise that resolves when the caller has one. `give` gives it back. */
  take(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
