import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Driver, eachMade, settled, type Steps } from '../../engine/store/reading/steps.js';

const log: string[] = [];

/** Yields the numbers up to `count`; after each in `waits` it waits for a turn of the event loop. */
function* numbers(count: number, waits: readonly number[] = []): Steps<number> {
  try {
    for (let i = 0; i < count; i++) {
      yield i;
      if (waits.includes(i)) yield setImmediate();
    }
  } finally {
    log.push('ended');
  }
}

describe('a driver of steps', () => {
  it('returns available results at once, and the others through promises', async () => {
    const driver = new Driver(numbers(4, [1]));
    expect([driver.now(), driver.now()]).toEqual([
      { done: false, value: 0 },
      { done: false, value: 1 },
    ]);
    expect(driver.now()).toBeNull();
    expect(driver.now()).toBeNull();
    expect(await driver.next()).toEqual({ done: false, value: 2 });
    expect([driver.now(), driver.now()]).toEqual([
      { done: false, value: 3 },
      { done: true, value: undefined },
    ]);
  });

  it('answers calls in their order, also concurrent ones, and runs the cleanup of the work', async () => {
    log.length = 0;
    const driver = new Driver(numbers(5, [0, 1, 2]));
    const calls = [driver.next(), driver.next(), driver.return(), driver.next()];
    expect(driver.now()).toBeNull();
    expect(await Promise.all(calls)).toEqual([
      { done: false, value: 0 },
      { done: false, value: 1 },
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    expect(log).toEqual(['ended']);
  });

  it('lets the work handle failures, and reports unhandled ones to the caller', async () => {
    function* mends(): Steps<string> {
      try {
        yield Promise.reject(new Error('first'));
      } catch (error) {
        yield `mended ${(error as Error).message}`;
      }
      yield* settled(Promise.reject(new Error('second')));
    }
    const driver = new Driver(mends());
    expect(driver.now()).toBeNull();
    expect(await driver.next()).toEqual({ done: false, value: 'mended first' });
    await expect(driver.next()).rejects.toThrow('second');
    expect(await driver.next()).toEqual({ done: true, value: undefined });
  });

  it('does the same for steps that are composed of others', async () => {
    log.length = 0;
    function* twice(value: number): Steps<number> {
      yield value;
      yield yield* settled(setImmediate(value));
    }
    const made: number[] = [];
    for await (const value of new Driver(eachMade(numbers(3, [0]), twice))) made.push(value);
    expect(made).toEqual([0, 0, 1, 1, 2, 2]);
    for await (const value of new Driver(eachMade(numbers(3), twice))) {
      if (value === 1) break;
    }
    expect(log).toEqual(['ended', 'ended']);
  });
});
