import { leaseMemory, type MemoryLease } from '../../engine/index.js';

/** Allocates and reuses the buffers that lines are read into. */
export class FrameBuffers {
  private readonly spare: Uint8Array[] = [];
  private readonly leases = new Map<Uint8Array, MemoryLease>();

  /** @param lent whether to use memory that is shared with threads, while there is some */
  constructor(
    private readonly sizeBytes: number,
    private readonly lent: boolean,
  ) {}

  /** Returns a buffer of `sizeBytes` bytes. */
  readonly take = (): Uint8Array => {
    const spare = this.spare.pop();
    if (spare !== undefined) return spare;
    const lease = this.lent ? leaseMemory(this.sizeBytes) : null;
    if (lease === null) return new Uint8Array(this.sizeBytes);
    const { bytes } = lease;
    this.leases.set(bytes, lease);
    return bytes;
  };

  /** The shared memory of a buffer; null where the buffer has to be transferred to threads. */
  leaseOf(bytes: Uint8Array): MemoryLease | null {
    return this.leases.get(bytes) ?? null;
  }

  /** Makes a buffer available to `take` again. Buffers of another size, such as detached ones, are dropped. */
  giveBack(bytes: Uint8Array): void {
    if (bytes.length === this.sizeBytes) this.spare.push(bytes);
  }

  /** Frees the shared memory. No thread may still use it. */
  close(): void {
    for (const lease of this.leases.values()) lease.free();
    this.leases.clear();
  }
}
