/** Work in progress. */
export interface Pending {
  /** Waits for the result and passes it to its consumer. */
  readonly deliver: () => Promise<void>;
  /** Waits for the result and discards it. */
  readonly discard: () => Promise<void>;
}

/**
 * Runs asynchronous work ahead of its consumer. `pending` is the work of that consumer in progress, oldest first. Results are consumed one
 * at a time, in the order in which the work was started. `start` is called once fewer than `depth` pieces of work are in progress; with a
 * depth of 0, the result is consumed before this returns. Throws the errors of earlier work and of its consumer. `discard` is called with a
 * result that is not consumed.
 */
export async function startInOrder<T>(
  pending: Pending[],
  depth: number,
  start: () => Promise<T>,
  consume: (result: T) => Promise<void>,
  discard: (result: T) => void = () => {},
): Promise<void> {
  if (depth === 0) return consume(await start());
  await finishInOrder(pending, depth - 1);
  const result = start();
  // Prevents an unhandled rejection: `deliver` throws the failure, but is never called if earlier work has failed.
  result.catch(() => {});
  pending.push({
    deliver: async () => consume(await result),
    discard: () => result.then(discard, () => {}),
  });
}

/** Waits until work has ended and its results are consumed, except for the newest `left` pieces. */
export async function finishInOrder(pending: Pending[], left = 0): Promise<void> {
  while (pending.length > left) await pending.shift()!.deliver();
}

/** Waits until all work has ended, and discards its results. */
export async function dropInOrder(pending: Pending[]): Promise<void> {
  for (const { discard } of pending.splice(0)) await discard();
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
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await work(items[index]!, index);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: Math.max(1, depth) }, lane));
  for (const end of lanes) if (end.status === 'rejected') throw end.reason;
  return results;
}
