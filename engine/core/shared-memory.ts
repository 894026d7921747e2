import { threadId } from 'node:worker_threads';
import { assert } from './errors.js';
import { kernelScratchBytesMax } from './limits.js';
import { Allocator, alignedBytes } from './allocator.js';
import { createMemory, memoryPageBytes, memoryPagesMax, moduleDataEnd, type KernelMemory } from './wasm.js';

/** The range that another thread has lent this thread for the arguments of kernel calls, in the memory of that other thread. */
export interface ScratchPlace {
  readonly address: number;
  readonly bytes: number;
}

/**
 * A range of a memory, to be sent to another thread. That thread was given the memory when it started (`LentMemory`). Sending the memory in
 * each message would take four times as long: 51 µs of CPU time for a round trip, instead of 13 µs.
 */
export interface MemoryRange {
  readonly memoryId: number;
  readonly address: number;
  readonly sizeBytes: number;
}

/** A memory in the form in which a new thread gets it, to work on ranges of it. */
export interface LentMemory {
  readonly memory: KernelMemory;
  readonly memoryId: number;
}

/** The memory grows by at least this much, so that it grows rarely. */
const growthBytes = 4 * 1024 * 1024;
/** Size of the 32-bit address space. */
const addressBytesMax = memoryPagesMax * memoryPageBytes;

/** Distance between the ids of two threads' memories: far more than the memories that a thread makes. */
const memoriesPerThread = 1_000_000;
let nextNumber = 0;

/**
 * The memory that a thread's kernels work on. It is shared: all threads that were given it see the same bytes, and growing it detaches no
 * views. Only the thread that made it allocates.
 */
export class SharedMemory {
  readonly memory: KernelMemory;
  /** The scratch range that the memory's owner has lent this thread; null otherwise. */
  lentScratch: ScratchPlace | null = null;
  readonly isForeign: boolean;
  /** Unique among the memories of all threads of the process. */
  readonly id: number;
  readonly #allocator: Allocator;
  /** All buffer objects that the memory has had. Views of older ones stay valid and refer to the same memory. */
  readonly #buffers = new Set<ArrayBufferLike>();
  #buffer: ArrayBufferLike;
  /** Bytes that may be allocated, including scratch memory. */
  #boundBytes = kernelScratchBytesMax;

  /** @param foreignId the id of a memory that another thread has made */
  constructor(memory: KernelMemory, foreignId?: number) {
    this.memory = memory;
    this.isForeign = foreignId !== undefined;
    this.id = foreignId ?? threadId * memoriesPerThread + nextNumber++;
    this.#buffer = memory.buffer;
    this.#buffers.add(this.#buffer);
    this.#allocator = new Allocator(moduleDataEnd);
    if (!this.isForeign) this.#allocator.extend(this.#buffer.byteLength);
  }

  /** The newest buffer. It contains all addresses that have been allocated. */
  get buffer(): ArrayBufferLike {
    return this.#buffer;
  }

  /** Allocated bytes. */
  get takenBytes(): number {
    return this.#allocator.takenBytes;
  }

  /** Free bytes, between and after the allocated ranges. */
  get freeBytes(): number {
    return this.#allocator.freeBytes;
  }

  /** Raises the bound of allocations by `bytes`; a negative number lowers it. */
  addBound(bytes: number): void {
    this.#boundBytes += bytes;
  }

  /** The buffer. It reaches up to `end`, even if another thread has grown the memory meanwhile. */
  bufferUpTo(end: number): ArrayBufferLike {
    // Growing by 0 pages makes this thread's buffer as long as other threads have made the memory.
    if (end > this.#buffer.byteLength) this.#grow(0);
    return this.#buffer;
  }

  /** A view of a range. */
  bytesAt({ address, sizeBytes }: Pick<MemoryRange, 'address' | 'sizeBytes'>): Uint8Array {
    return new Uint8Array(this.bufferUpTo(address + sizeBytes), address, sizeBytes);
  }

  /** Whether an array is in this memory, so that kernels need no copy of it. */
  holds(array: ArrayBufferView): boolean {
    return this.#buffers.has(array.buffer);
  }

  /**
   * The address of a range of `sizeBytes`, with undefined contents. Null where the bound would be exceeded, where the machine has no more
   * memory, or where the memory would have to grow and `grows` is false.
   */
  allocate(sizeBytes: number, { grows } = { grows: true }): number | null {
    const address = this.#allocator.allocate(sizeBytes);
    if (address !== null || !grows) return address;
    const missing = alignedBytes(sizeBytes) - this.#allocator.freeAtEndBytes;
    const most = Math.min(this.#boundBytes, addressBytesMax) - this.#buffer.byteLength;
    if (missing > most) return null;
    const pages = Math.ceil(Math.min(most, Math.max(missing, growthBytes)) / memoryPageBytes);
    if (!this.#grow(Math.min(pages, memoryPagesMax - this.#buffer.byteLength / memoryPageBytes))) return null;
    this.#allocator.extend(this.#buffer.byteLength);
    return this.#allocator.allocate(sizeBytes);
  }

  /** Frees all but the first `sizeBytes` of the range at `address`. */
  shrink(address: number, sizeBytes: number): void {
    this.#allocator.shrink(address, sizeBytes);
  }

  /** Frees the range at `address`. */
  free(address: number): void {
    this.#allocator.free(address);
  }

  /** Bytes of the range at `address`. */
  sizeOf(address: number): number {
    return this.#allocator.sizeOf(address);
  }

  /** The description of a range for another thread. */
  rangeAt(address: number, sizeBytes: number): MemoryRange {
    return { memoryId: this.id, address, sizeBytes };
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

let own: SharedMemory | undefined;
let lent: SharedMemory | undefined;

/** The memory of this thread. It is made at the first call. Throws `unsupported` without WebAssembly and SIMD. */
export function sharedMemory(): SharedMemory {
  own ??= new SharedMemory(createMemory(growthBytes / memoryPageBytes, memoryPagesMax));
  return own;
}

/** The memory of this thread, for a thread that it starts. Throws `unsupported` without WebAssembly and SIMD. */
export function memoryToLend(): LentMemory {
  const { memory, id } = sharedMemory();
  return { memory, memoryId: id };
}

/** Sets the memory that the ranges sent to this thread refer to. */
export function takeLentMemory({ memory, memoryId }: LentMemory): void {
  lent = new SharedMemory(memory, memoryId);
}

let lentScratch: ScratchPlace = { address: 0, bytes: 0 };

/** Sets the range of the lent memory that kernels may use for their arguments from now on. */
export function takeLentScratch(place: ScratchPlace): void {
  lentScratch = place;
}

/**
 * Lets the kernels of this thread work on the memory that it was lent, which columns lie in, while `use` runs. The thread that has the memory
 * itself simply calls `use`.
 */
export function onLentMemory<T>(use: (memory: SharedMemory) => T): T {
  const memory = lent;
  return memory === undefined ? use(sharedMemory()) : workingOn(memory, lentScratch, () => use(memory));
}

/** The memory of a range, for a thread that does not allocate from it. */
export function foreignMemory({ memoryId }: MemoryRange): SharedMemory {
  // Without other threads, the thread that made the memory does the work itself.
  if (lent === undefined) takeLentMemory(memoryToLend());
  assert(lent?.id === memoryId, 'a range lies in the memory that was lent');
  return lent;
}

/**
 * Lets the kernels of this thread work on another thread's memory while `use` runs, with the scratch range that its owner has lent. Calls
 * that need more scratch memory use the separate memory of this thread.
 */
export function workingOn<T>(memory: SharedMemory, scratch: ScratchPlace, use: () => T): T {
  const before = own;
  own = memory;
  memory.lentScratch = scratch;
  try {
    return use();
  } finally {
    own = before;
    memory.lentScratch = null;
  }
}
