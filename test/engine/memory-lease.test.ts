import { describe, expect, it } from 'vitest';
import { leaseMemory, leasedMemoryBytes, type MemoryLease } from '../../engine/core/memory-lease.js';
import { leasedBytesMax } from '../../engine/core/limits.js';

describe('leased memory', () => {
  it('is counted, can be shrunk, and can be given back only once', () => {
    const before = leasedMemoryBytes();
    const lease = leaseMemory(1_000_000)!;
    expect(lease.bytes.length).toBe(1_000_000);
    expect(lease.address % 64).toBe(0);
    const held = leasedMemoryBytes() - before;
    expect(held).toBeGreaterThanOrEqual(1_000_000);
    lease.bytes.fill(3);
    lease.shrink(1000);
    expect(leasedMemoryBytes() - before).toBeLessThan(2000);
    expect([lease.range.sizeBytes, lease.bytes.length]).toEqual([1000, 1000]);
    expect(lease.bytes.every((byte) => byte === 3)).toBe(true);
    lease.free();
    lease.free();
    expect(leasedMemoryBytes()).toBe(before);
  });

  it('does not overlap other leases, and is limited', () => {
    const before = leasedMemoryBytes();
    const leases: MemoryLease[] = [];
    const pieceBytes = leasedBytesMax / 4;
    for (let lease = leaseMemory(pieceBytes); lease !== null; lease = leaseMemory(pieceBytes))
      leases.push(lease);
    expect(leases.length).toBe(3);
    const ends = leases.map(({ address }) => address).sort((a, b) => a - b);
    for (let i = 1; i < ends.length; i++) expect(ends[i]! - ends[i - 1]!).toBeGreaterThanOrEqual(pieceBytes);
    for (const lease of leases) lease.free();
    expect(leasedMemoryBytes()).toBe(before);
    const again = leaseMemory(pieceBytes);
    expect(again).not.toBeNull();
    again?.free();
  });
});
