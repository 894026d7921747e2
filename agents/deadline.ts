/** What `coming` gives, or `deadline` when it takes longer than `ms`. A failure that comes later is for who awaits it again. */
export async function orDeadline<T>(coming: Promise<T>, ms: number): Promise<T | 'deadline'> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<'deadline'>((resolve) => {
    timer = setTimeout(() => resolve('deadline'), Math.max(0, ms));
  });
  coming.catch(() => {});
  try {
    return await Promise.race([coming, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
