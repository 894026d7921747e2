import { describe, expect, it } from 'vitest';
import { once, SharedWork } from '../../engine/core/waiting.js';

/** Work that fails the first time, and counts how often it was begun. */
function failingOnce() {
  let begun = 0;
  const work = async (): Promise<number> => {
    await Promise.resolve();
    if (++begun === 1) throw new Error('no');
    return begun;
  };
  return work;
}

describe('work that callers share', () => {
  it('is done once for all who ask meanwhile, and again after it has failed', async () => {
    const shared = new SharedWork(failingOnce());
    const results = await Promise.allSettled([shared.run(), shared.run()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(shared.isRunning).toBe(false);
    expect(await Promise.all([shared.run(), shared.run()])).toEqual([2, 2]);
    expect(await shared.run()).toBe(3);
  });

  it('that makes something is not done again, unless it has failed', async () => {
    const make = once(failingOnce());
    const results = await Promise.allSettled([make(), make()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await Promise.all([make(), make()])).toEqual([2, 2]);
    expect(await make()).toBe(2);
  });
});
