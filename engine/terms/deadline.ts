/**
 * Resolves to the result of `coming`, or to `deadline` if that takes longer than `ms`. A later rejection is ignored here, so the caller
 * must await `coming` again to see it. Each call adds a reaction to `coming` that stays until it settles, so do not call this repeatedly in
 * a loop for one promise.
 */
export function orDeadline<T>(coming: Promise<T>, ms: number): Promise<T | 'deadline'> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve('deadline'), Math.max(0, ms));
    void coming.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
