import { expect, it } from 'vitest';
import { missingProgram, unlessRequired } from '../needs.js';

it('what a test needs is missing for a reason, unless it is required', () => {
  expect(unlessRequired('chdb', 'it is not installed', ['uws'])).toBe('it is not installed');
  expect(unlessRequired('chdb', null, ['uws', 'chdb'])).toBeNull();
  expect(() => unlessRequired('chdb', 'it is not installed', ['uws', 'chdb'])).toThrow(
    'it is not installed, and LOGSTRATA_REQUIRED names chdb',
  );
  expect(missingProgram('node')).toBeNull();
  expect(missingProgram('node', 'no-such-program')).toBe('there is no no-such-program here');
});
