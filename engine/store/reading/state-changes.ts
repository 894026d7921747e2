/** Those who want to know when a state has changed: what was committed has become visible, or is shown under other fields. */
export class StateChanges {
  readonly #calls = new Set<() => void>();

  /** Calls `call` after each change, until what is returned is called. It is not to do more than note it: the commit waits. */
  listen(call: () => void): () => void {
    // One that is given twice is two.
    const own = (): void => call();
    this.#calls.add(own);
    return () => void this.#calls.delete(own);
  }

  tell(): void {
    for (const call of this.#calls) call();
  }
}
