import { assert } from './errors.js';
import { leasedBytesMax } from './limits.js';
import { bufferBytes } from './allocator.js';
import { sharedMemory, type MemoryRange } from './shared-memory.js';

let leasedBytes = 0;

/**
 * A range of this thread's shared memory. Its holder has to free it; until then every thread that knows its address can read and write it
 * in place. Such memory is reused, whereas arrays that are transferred between threads are new each time and burden the garbage collector.
 */
export interface MemoryLease {
  readonly address: number;
  /** The description that another thread needs to find the range. */
  readonly range: MemoryRange;
  /** The bytes of the range. */
  readonly bytes: Uint8Array;
  /** Frees all but the first `sizeBytes`. */
  shrink(sizeBytes: number): void;
  /** Frees the range. Further calls do nothing. */
  free(): void;
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
  let heldBytes = sizeBytes;
  let isFree = false;
  const giveBack = (release: () => void): void => {
    const before = memory.takenBytes;
    release();
    const bytes = before - memory.takenBytes;
    leasedBytes -= bytes;
    memory.addBound(-bytes);
  };
  return {
    address,
    get range() {
      return memory.rangeAt(address, heldBytes);
    },
    get bytes() {
      return memory.bytesAt({ address, sizeBytes: heldBytes });
    },
    shrink: (keptBytes) => {
      assert(!isFree && keptBytes <= heldBytes, 'a lease shrinks while it is held');
      giveBack(() => memory.shrink(address, bufferBytes(keptBytes)));
      heldBytes = keptBytes;
    },
    free: () => {
      if (!isFree) giveBack(() => memory.free(address));
      isFree = true;
    },
  };
}
