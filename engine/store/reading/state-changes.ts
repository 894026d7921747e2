/** The listeners of an agent's state. They are called when a commit has become visible, or when the schema has changed. */
export class StateChanges {
  readonly #calls = new Set<() => void>();

  /** Calls `call` after each change, until the returned function is called. `call` must return quickly, because the commit waits for it. */
  listen(call: () => void): () => void {
    // A wrapper, so that a function that is registered twice is called twice.
    const own = (): void => call();
    this.#calls.add(own);
    return () => void this.#calls.delete(own);
  }

  tell(): void {
    for (const call of this.#calls) call();
  }
}
