import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { Allocator } from '../../engine/core/allocator.js';

const numRuns = caseCount(100, 5000);

type Step =
  | { readonly kind: 'allocate'; readonly sizeBytes: number }
  | { readonly kind: 'free' | 'shrink'; readonly pick: number }
  | { readonly kind: 'extend'; readonly bytes: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('allocate' as const), sizeBytes: fc.nat(3000) }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constantFrom('free' as const, 'shrink' as const), pick: fc.nat() }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('extend' as const), bytes: fc.nat(5000) }) },
  ),
  { maxLength: 120 },
);

describe('Allocator', () => {
  it('gives out ranges that never overlap, and takes all of them back', () => {
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 1000, 2 ** 31 - 4096, 2 ** 32 - 200_000), (list, base) => {
        const allocator = new Allocator(base);
        const taken: { address: number; sizeBytes: number }[] = [];
        let end = allocator.end;
        const first = end;
        for (const step of list) {
          if (step.kind === 'extend') {
            end += step.bytes;
            allocator.extend(end);
            end = allocator.end;
          } else if (step.kind === 'allocate') {
            const address = allocator.allocate(step.sizeBytes);
            if (address === null) {
              // Only a fragmented or full space refuses: the space used and the space requested exceed the total.
              const free = end - first - allocator.takenBytes;
              expect(free < step.sizeBytes + 64 || taken.length > 0).toBe(true);
              continue;
            }
            expect(address % 64).toBe(0);
            expect(address).toBeGreaterThanOrEqual(first);
            expect(address + step.sizeBytes).toBeLessThanOrEqual(end);
            for (const other of taken) {
              const apart =
                address + Math.max(1, step.sizeBytes) <= other.address ||
                other.address + Math.max(1, other.sizeBytes) <= address;
              expect(apart).toBe(true);
            }
            taken.push({ address, sizeBytes: step.sizeBytes });
          } else if (taken.length > 0) {
            const place = step.pick % taken.length;
            const range = taken[place]!;
            if (step.kind === 'shrink') {
              range.sizeBytes = range.sizeBytes >> 1;
              allocator.shrink(range.address, range.sizeBytes);
            } else {
              allocator.free(range.address);
              taken.splice(place, 1);
            }
          }
        }
        for (const { address } of taken) allocator.free(address);
        expect(allocator.takenBytes).toBe(0);
        // All free ranges have been joined into one again.
        if (end > first) expect(allocator.allocate(end - first)).toBe(first);
      }),
      { numRuns },
    );
  });

  it('allocates from the smallest free range that is large enough', () => {
    const allocator = new Allocator(0);
    allocator.extend(4096);
    const [a, b, c, d] = [1024, 64, 512, 64].map((size) => allocator.allocate(size)!);
    allocator.free(a!);
    allocator.free(c!);
    expect(allocator.allocate(500)).toBe(c);
    expect(allocator.allocate(600)).toBe(a);
    expect([b, d]).toEqual([1024, 1600]);
  });
});
