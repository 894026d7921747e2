import type { Arena } from '../../memory/arena.js';
import { leaseMemory, type MemoryLease } from '../../memory/memory-lease.js';

/** Smaller messages do not benefit from kernels. */
const leasedBytesMin = 32 * 1024;
/** Larger messages get memory of their own, which the garbage collector frees. */
const keptBytesMax = 16 * 1024 * 1024;

/**
 * Reuses memory for the messages of commits, which take some megabytes each. Allocating it anew each time would keep the garbage collector
 * busy. If shared memory can be leased, kernels copy the records into it and compute the checksum in place.
 */
export class MessageSpace {
  private spare = new Uint8Array(0);

  /** Calls `use` with an arena for one message. The memory is uninitialised and belongs to `use` until it returns. */
  async use<T>(use: (arena: Arena) => Promise<T>): Promise<T> {
    const leases: MemoryLease[] = [];
    let taken = this.spare;
    // A concurrent call gets other memory.
    this.spare = new Uint8Array(0);
    try {
      return await use((sizeBytes) => {
        if (sizeBytes <= taken.length) return taken.subarray(0, sizeBytes);
        const isLeased = sizeBytes >= leasedBytesMin && sizeBytes <= keptBytesMax;
        const lease = isLeased ? leaseMemory(sizeBytes) : null;
        if (lease !== null) {
          leases.push(lease);
          return lease.bytes;
        }
        const fresh = new Uint8Array(sizeBytes);
        if (sizeBytes <= keptBytesMax) taken = fresh;
        return fresh;
      });
    } finally {
      for (const lease of leases) lease.free();
      if (taken.length > this.spare.length) this.spare = taken;
    }
  }
}
