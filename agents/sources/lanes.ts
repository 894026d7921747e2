/** Runs `run` on every item, `lanes` of them at the same time. Throws what the first one throws that fails. */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  run: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) await run(items[next++]!);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
