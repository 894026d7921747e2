import { kernelScratchBytesMax } from '../limits.js';
import { Allocator, alignedBytes, bufferBytes } from './allocator.js';
import {
  createMemory,
  instantiateOver,
  memoryPageBytes,
  memoryPagesMax,
  type KernelMemory,
  type Kernels,
} from './wasm.js';

/** Where this thread may put the arguments of a call, in a memory that another thread allocates from. */
export interface ScratchPlace {
  readonly address: number;
  readonly bytes: number;
}

/** A memory as a message to another thread. */
export interface MemoryHandle {
  readonly memory: KernelMemory;
  readonly scratch: ScratchPlace;
}

/** The kernels' own data ends before this where there are no kernels to ask. */
const ownBytesDefault = 1024;
/** The memory grows by at least this much, so that it grows seldom. */
const growthBytes = 4 * 1024 * 1024;
/** The whole address space. */
const addressBytesMax = memoryPagesMax * memoryPageBytes;

/**
 * The memory that a thread's kernels work on, with the kernels over it. It is shared: threads that were handed it see the
 * same bytes, and growing it detaches nothing. Only the thread that made it allocates.
 */
export class SharedMemory {
  readonly memory: KernelMemory;
  /** Null where kernels can't run, or are switched off: the memory is there all the same. */
  readonly kernels: Kernels | null;
  /** Set where another thread allocates. */
  readonly adoptedScratch: ScratchPlace | null;
  readonly #allocator: Allocator;
  /** Every buffer that the memory has had: views of the older ones stay valid, and lie in it just as well. */
  readonly #buffers = new Set<ArrayBufferLike>();
  #buffer: ArrayBufferLike;
  /** Bytes that may be allocated, scratch included. */
  #boundBytes = kernelScratchBytesMax;

  constructor(memory: KernelMemory, adoptedScratch: ScratchPlace | null = null) {
    this.memory = memory;
    this.kernels = instantiateOver(memory);
    this.adoptedScratch = adoptedScratch;
    this.#buffer = memory.buffer;
    this.#buffers.add(this.#buffer);
    this.#allocator = new Allocator(this.kernels?.scratchBase() ?? ownBytesDefault);
    if (adoptedScratch === null) this.#allocator.extend(this.#buffer.byteLength);
  }

  /** The newest buffer: all addresses that were given out lie in it. */
  get buffer(): ArrayBufferLike {
    return this.#buffer;
  }

  /** Bytes given out. */
  get takenBytes(): number {
    return this.#allocator.takenBytes;
  }

  /** Lets this many bytes more be allocated; a negative number takes them back. */
  addBound(bytes: number): void {
    this.#boundBytes += bytes;
  }

  /** The buffer, which reaches up to `end` although another thread has grown the memory. */
  bufferUpTo(end: number): ArrayBufferLike {
    // Growing by nothing makes a thread look for what others have grown.
    if (end > this.#buffer.byteLength) this.#grow(0);
    return this.#buffer;
  }

  /** Whether an array lies in this memory, so that kernels need no copy of it. */
  holds(array: ArrayBufferView): boolean {
    return this.#buffers.has(array.buffer);
  }

  /** The address of a range of `sizeBytes`, of any content; null when that would pass the bound or the machine has no more. */
  allocate(sizeBytes: number): number | null {
    const address = this.#allocator.allocate(sizeBytes);
    if (address !== null) return address;
    const missing = alignedBytes(sizeBytes) - this.#allocator.freeAtEndBytes;
    const most = Math.min(this.#boundBytes, addressBytesMax) - this.#buffer.byteLength;
    if (missing > most) return null;
    const pages = Math.ceil(Math.min(most, Math.max(missing, growthBytes)) / memoryPageBytes);
    if (!this.#grow(Math.min(pages, memoryPagesMax - this.#buffer.byteLength / memoryPageBytes))) return null;
    this.#allocator.extend(this.#buffer.byteLength);
    return this.#allocator.allocate(sizeBytes);
  }

  shrink(address: number, sizeBytes: number): void {
    this.#allocator.shrink(address, sizeBytes);
  }

  free(address: number): void {
    this.#allocator.free(address);
  }

  /** Bytes of the range at `address`. */
  sizeOf(address: number): number {
    return this.#allocator.sizeOf(address);
  }

  /** What another thread needs to see this memory; its scratch, of `scratchBytes`, is given back by `free`. Null without room. */
  handle(scratchBytes: number): MemoryHandle | null {
    const bytes = bufferBytes(scratchBytes);
    const address = this.allocate(bytes);
    return address === null ? null : { memory: this.memory, scratch: { address, bytes } };
  }

  #grow(pages: number): boolean {
    try {
      this.memory.grow(pages);
    } catch {
      return false;
    }
    this.#buffer = this.memory.buffer;
    this.#buffers.add(this.#buffer);
    return true;
  }
}

let own: SharedMemory | null | undefined;

/** The memory of this thread, made when it is first asked for. Null on a machine that has no WebAssembly. */
export function sharedMemory(): SharedMemory | null {
  if (own === undefined) {
    const memory = createMemory(growthBytes / memoryPageBytes, memoryPagesMax);
    own = memory === null ? null : new SharedMemory(memory);
  }
  return own;
}

/** Makes the memory of another thread this thread's. Views that were made over its own stay valid, and are copied to be worked on. */
export function adoptMemory(handle: MemoryHandle): SharedMemory {
  own = new SharedMemory(handle.memory, handle.scratch);
  return own;
}
