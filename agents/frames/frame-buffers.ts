import { leaseMemory, type MemoryLease } from '../../engine/index.js';

/** Buffers that lines are read into. A buffer that is given back is used again. */
export class FrameBuffers {
  private readonly spare: Uint8Array[] = [];
  private readonly leases = new Map<Uint8Array, MemoryLease>();

  /** @param lent whether the buffers should lie in memory that threads see, as long as there is some */
  constructor(
    private readonly sizeBytes: number,
    private readonly lent: boolean,
  ) {}

  /** A buffer of `sizeBytes`. */
  readonly take = (): Uint8Array => {
    const spare = this.spare.pop();
    if (spare !== undefined) return spare;
    const lease = this.lent ? leaseMemory(this.sizeBytes) : null;
    if (lease === null) return new Uint8Array(this.sizeBytes);
    const { bytes } = lease;
    this.leases.set(bytes, lease);
    return bytes;
  };

  /** Where threads see a buffer that was taken; null for one that has to move to them. */
  leaseOf(bytes: Uint8Array): MemoryLease | null {
    return this.leases.get(bytes) ?? null;
  }

  giveBack(bytes: Uint8Array): void {
    if (bytes.length === this.sizeBytes) this.spare.push(bytes);
  }

  /** Frees the memory that threads see. No thread may still work on it. */
  close(): void {
    for (const lease of this.leases.values()) lease.free();
    this.leases.clear();
  }
}
