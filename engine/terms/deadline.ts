/**
 * What `coming` gives, or `deadline` when it takes longer than `ms`. A failure that comes later is for who awaits it again. Each call
 * leaves something with `coming` until that ends: one promise is not to be waited for in this way any number of times.
 */
export function orDeadline<T>(coming: Promise<T>, ms: number): Promise<T | 'deadline'> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve('deadline'), Math.max(0, ms));
    void coming.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
