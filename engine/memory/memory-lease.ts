import { assert } from '../terms/assert.js';
import { leasedBytesMax } from '../terms/limits.js';
import { bufferBytes } from './allocator.js';
import { sharedMemory, type MemoryRange, type SharedMemory } from './shared-memory.js';

let leasedBytes = 0;

/**
 * A range of this thread's shared memory. Its holder has to free it; until then every thread that knows its address can read and write it
 * in place. Such memory is reused, whereas arrays that are transferred between threads are new each time and burden the garbage collector.
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

  /** The description that another thread needs to find the range. */
  get range(): MemoryRange {
    return this.memory.rangeAt(this.address, this.#sizeBytes);
  }

  /** The bytes of the range. */
  get bytes(): Uint8Array {
    return this.memory.bytesAt({ address: this.address, sizeBytes: this.#sizeBytes });
  }

  /** Frees all but the first `sizeBytes`. */
  shrink(sizeBytes: number): void {
    assert(!this.#isFree && sizeBytes <= this.#sizeBytes, 'a lease shrinks while it is held');
    const heldBytes = this.memory.sizeOf(this.address);
    this.memory.shrink(this.address, bufferBytes(sizeBytes));
    this.#giveBack(heldBytes - this.memory.sizeOf(this.address));
    this.#sizeBytes = sizeBytes;
  }

  /** Frees the range. Further calls do nothing. */
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
 * Allocates a range of `sizeBytes` with undefined contents, aligned and followed by padding, as kernels need it. Null where the bound of
 * all leases or of the memory is reached, and while this thread works on another thread's memory.
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
