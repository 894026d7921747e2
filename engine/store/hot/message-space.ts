import type { Arena } from '../../memory/arena.js';
import { leaseMemory, type MemoryLease } from '../../memory/memory-lease.js';

/** A smaller message has nothing to gain from kernels. */
const leasedBytesMin = 32 * 1024;
/** A message that is larger gets memory of its own, which the garbage collector frees. */
const keptBytesMax = 16 * 1024 * 1024;

/**
 * Memory that messages are laid out in, one after another. A commit makes a message of some megabytes, and new memory for each would
 * have the garbage collector run all the time. Where it can be leased, kernels copy records into it and take its checksum where it
 * lies, and in between it is there for others.
 */
export class MessageSpace {
  private spare = new Uint8Array(0);

  /** Has `use` fill and use memory for a message, with anything in it at first, which is its own until it has ended. */
  async use<T>(use: (arena: Arena) => Promise<T>): Promise<T> {
    const leases: MemoryLease[] = [];
    let taken = this.spare;
    // Who comes meanwhile gets other memory.
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
