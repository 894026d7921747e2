/** What `source` gives, each made while the one before is used. Ending early waits for what is under way. */
export async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const result = await next;
      if (result.done === true) return;
      next = source.next();
      // A failure is told when its turn comes, which may be never.
      next.catch(() => undefined);
      yield result.value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}
