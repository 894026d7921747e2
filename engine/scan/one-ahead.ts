/** Gives what `source` gives. Each is made while the caller works on the one before it. Ending early waits for what is being made. */
export async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const result = await next;
      if (result.done === true) return;
      next = source.next();
      // A failure is thrown when the caller asks for it, which it may never do.
      next.catch(() => undefined);
      yield result.value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}
