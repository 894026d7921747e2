/**
 * Runs all steps in order, even after one fails, and then throws the first failure. For releasing several resources, so that a failure to
 * release one does not keep the others.
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
