import { assert } from '../terms/assert.js';
import { leasedBytesMax } from '../terms/limits.js';
import { bufferBytes } from './allocator.js';
import { sharedMemory, type MemoryRange, type SharedMemory } from './shared-memory.js';

let leasedBytes = 0;

/**
 * A range of this thread's shared memory. Its holder frees it; until then every thread that knows its place reads and writes it where it
 * lies. Such memory is reused, while arrays that move between threads are new each time and give the garbage collector work.
 */
export class MemoryLease {
  #sizeBytes: number;
  #isFree = false;

  constructor(
    private readonly memory: SharedMemory,
    readonly address: number,
    sizeBytes: number,
  ) {
    this.#sizeBytes = sizeBytes;
  }

  /** What another thread needs to find it. */
  get range(): MemoryRange {
    return this.memory.rangeAt(this.address, this.#sizeBytes);
  }

  /** The range as it is seen here. */
  get bytes(): Uint8Array {
    return this.memory.bytesAt({ address: this.address, sizeBytes: this.#sizeBytes });
  }

  /** Gives back all but the first `sizeBytes`. */
  shrink(sizeBytes: number): void {
    assert(!this.#isFree && sizeBytes <= this.#sizeBytes, 'a lease shrinks while it is held');
    const heldBytes = this.memory.sizeOf(this.address);
    this.memory.shrink(this.address, bufferBytes(sizeBytes));
    this.#giveBack(heldBytes - this.memory.sizeOf(this.address));
    this.#sizeBytes = sizeBytes;
  }

  /** Gives all of it back. Once is enough. */
  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    const heldBytes = this.memory.sizeOf(this.address);
    this.memory.free(this.address);
    this.#giveBack(heldBytes);
  }

  #giveBack(bytes: number): void {
    leasedBytes -= bytes;
    this.memory.addBound(-bytes);
  }
}

/** Bytes of all leases that are held. */
export function leasedMemoryBytes(): number {
  return leasedBytes;
}

/**
 * A range of `sizeBytes` with any content, at an address that suits kernels and followed by slack. Null where
 * the bound of leases or of the memory is reached, and in a thread that works on the memory of another.
 */
export function leaseMemory(sizeBytes: number): MemoryLease | null {
  const memory = sharedMemory();
  const wantedBytes = bufferBytes(sizeBytes);
  if (memory.isForeign || leasedBytes + wantedBytes > leasedBytesMax) return null;
  memory.addBound(wantedBytes);
  const address = memory.allocate(wantedBytes);
  if (address === null) {
    memory.addBound(-wantedBytes);
    return null;
  }
  leasedBytes += wantedBytes;
  return new MemoryLease(memory, address, sizeBytes);
}
