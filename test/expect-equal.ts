import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/**
 * Like `expect(found).toEqual(wanted)`, for assertions that run many thousands of times or compare thousands of values: `expect` takes much
 * longer than the comparison.
 */
export function expectEqual(found: unknown, wanted: unknown, where?: string): void {
  if (!isDeepStrictEqual(found, wanted)) expect(found, where).toEqual(wanted);
}
