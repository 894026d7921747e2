import { expect } from 'vitest';
import { alignmentBytes, bufferBytes } from '../../engine/core/allocator.js';
import type { TypedArray } from '../../engine/core/scratch.js';
import { sharedMemory, type SharedMemory } from '../../engine/core/shared-memory.js';

const guard = 0xa5;
/** Bytes on both sides of an array and its slack that no kernel may write to. */
const guardBytes = alignmentBytes;

/** An array as it is, or a copy in the memory of the kernels: the calling functions must treat both alike. */
export type Lay = <T extends TypedArray>(array: T) => T;

interface Laid {
  readonly address: number;
  /** Bytes of the array and its slack. */
  readonly sizeBytes: number;
}

/** Runs `use` with the arrays as they are, and with copies in the kernels' memory, around which no byte may change. */
export function both(use: (lay: Lay) => void): void {
  use((array) => array);
  inShared(use);
}

/** Runs `use` with copies of the arrays in the kernels' memory, around which no byte may change. */
export function inShared(use: (lay: Lay) => void): void {
  const memory = sharedMemory();
  const laid: Laid[] = [];
  try {
    use((array) => layInto(memory, array, laid));
    for (const { address, sizeBytes } of laid) {
      const from = address + guardBytes;
      expectGuard(memory, address, from);
      expectGuard(memory, from + sizeBytes, from + sizeBytes + guardBytes);
    }
  } finally {
    for (const { address } of laid) memory.free(address);
  }
}

function layInto<T extends TypedArray>(memory: SharedMemory, array: T, laid: Laid[]): T {
  const sizeBytes = bufferBytes(array.byteLength);
  const wholeBytes = sizeBytes + 2 * guardBytes;
  const address = memory.allocate(wholeBytes)!;
  laid.push({ address, sizeBytes });
  new Uint8Array(memory.buffer, address, wholeBytes).fill(guard);
  const Constructor = array.constructor as new (
    buffer: ArrayBufferLike,
    byteOffset: number,
    length: number,
  ) => T;
  const copy = new Constructor(memory.buffer, address + guardBytes, array.length);
  (copy as Uint8Array).set(array as Uint8Array);
  return copy;
}

function expectGuard(memory: SharedMemory, from: number, to: number): void {
  const bytes = new Uint8Array(memory.buffer, from, to - from);
  if (!bytes.every((byte) => byte === guard)) expect.fail('bytes beside an array have changed');
}
