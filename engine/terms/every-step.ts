/**
 * Takes every step in its order, also behind one that fails, and throws the first failure once all are done: for the end of what holds
 * on to several things, so that one that can't be let go of keeps nobody waiting for the others.
 */
export async function everyStep(steps: Iterable<() => unknown>): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
