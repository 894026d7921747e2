import { expect, it } from 'vitest';
import { everyStep } from '../../engine/core/waiting.js';

it('every step runs in order even if others fail, and the first failure is reported', async () => {
  const taken: string[] = [];
  const step = (name: string, failure?: Error) => async () => {
    await Promise.resolve();
    taken.push(name);
    if (failure !== undefined) throw failure;
  };
  const first = new Error('first');
  const steps = [
    step('a'),
    step('b', first),
    () => {
      taken.push('c');
      throw new Error('second');
    },
    step('d'),
  ];
  await expect(everyStep(steps)).rejects.toBe(first);
  expect(taken).toEqual(['a', 'b', 'c', 'd']);
  await everyStep([step('e')]);
  expect(taken.at(-1)).toBe('e');
});
