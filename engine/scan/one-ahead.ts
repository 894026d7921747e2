/**
 * Yields the elements of `source`, making each while the caller works on the one before. Ending early waits for the element in progress.
 */
export async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const result = await next;
      if (result.done === true) return;
      next = source.next();
      // Mark the promise as handled: the caller may never ask for the element, and then nobody sees the failure.
      next.catch(() => undefined);
      yield result.value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}
