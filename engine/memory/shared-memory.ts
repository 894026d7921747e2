import { threadId } from 'node:worker_threads';
import { assert } from '../terms/assert.js';
import { kernelScratchBytesMax } from '../terms/limits.js';
import { Allocator, alignedBytes } from './allocator.js';
import { createMemory, memoryPageBytes, memoryPagesMax, moduleDataEnd, type KernelMemory } from './wasm.js';

/** Where this thread may put the arguments of a call, in a memory that another thread allocates from. */
export interface ScratchPlace {
  readonly address: number;
  readonly bytes: number;
}

/**
 * A range of a memory as a message to another thread, which was handed the memory when it began (`LentMemory`). A memory in each message
 * would take four times as long as the message: 51 µs of processor time there and back, and 13 without.
 */
export interface MemoryRange {
  readonly memoryId: number;
  readonly address: number;
  readonly sizeBytes: number;
}

/** A memory as a thread is handed it that will work on ranges of it. */
export interface LentMemory {
  readonly memory: KernelMemory;
  readonly memoryId: number;
}

/** The memory grows by at least this much, so that it grows seldom. */
const growthBytes = 4 * 1024 * 1024;
/** The whole address space. */
const addressBytesMax = memoryPagesMax * memoryPageBytes;

/** Far more than a thread makes. */
const memoriesPerThread = 1_000_000;
let nextNumber = 0;

/**
 * The memory that a thread's kernels work on. It is shared: threads that were handed it see the
 * same bytes, and growing it detaches nothing. Only the thread that made it allocates.
 */
export class SharedMemory {
  readonly memory: KernelMemory;
  /** Where another thread allocates: the place that it has lent this one. */
  lentScratch: ScratchPlace | null = null;
  readonly isForeign: boolean;
  /** Tells the memories of all threads of the process apart. */
  readonly id: number;
  readonly #allocator: Allocator;
  /** Every buffer that the memory has had: views of the older ones stay valid, and lie in it just as well. */
  readonly #buffers = new Set<ArrayBufferLike>();
  #buffer: ArrayBufferLike;
  /** Bytes that may be allocated, scratch included. */
  #boundBytes = kernelScratchBytesMax;

  /** @param foreignId the memory's own, where another thread has made it */
  constructor(memory: KernelMemory, foreignId?: number) {
    this.memory = memory;
    this.isForeign = foreignId !== undefined;
    this.id = foreignId ?? threadId * memoriesPerThread + nextNumber++;
    this.#buffer = memory.buffer;
    this.#buffers.add(this.#buffer);
    this.#allocator = new Allocator(moduleDataEnd);
    if (!this.isForeign) this.#allocator.extend(this.#buffer.byteLength);
  }

  /** The newest buffer: all addresses that were given out lie in it. */
  get buffer(): ArrayBufferLike {
    return this.#buffer;
  }

  /** Bytes given out. */
  get takenBytes(): number {
    return this.#allocator.takenBytes;
  }

  /** Bytes between what is given out, and behind it. */
  get freeBytes(): number {
    return this.#allocator.freeBytes;
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

  /** A range of it, as this thread sees it. */
  bytesAt({ address, sizeBytes }: Pick<MemoryRange, 'address' | 'sizeBytes'>): Uint8Array {
    return new Uint8Array(this.bufferUpTo(address + sizeBytes), address, sizeBytes);
  }

  /** Whether an array lies in this memory, so that kernels need no copy of it. */
  holds(array: ArrayBufferView): boolean {
    return this.#buffers.has(array.buffer);
  }

  /**
   * The address of a range of `sizeBytes`, of any content; null when that would pass the bound or the machine has no more, or the memory
   * would have to grow and is not to.
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

  /** What another thread needs to work on a range. */
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

/** The memory of this thread, made when it is first asked for. Throws `unsupported` without WebAssembly. */
export function sharedMemory(): SharedMemory {
  own ??= new SharedMemory(createMemory(growthBytes / memoryPageBytes, memoryPagesMax));
  return own;
}

/** The memory of this thread for a thread that it starts. Throws `unsupported` without WebAssembly. */
export function memoryToLend(): LentMemory {
  const { memory, id } = sharedMemory();
  return { memory, memoryId: id };
}

/** Has the ranges that this thread is sent be found in `memory`. */
export function takeLentMemory({ memory, memoryId }: LentMemory): void {
  lent = new SharedMemory(memory, memoryId);
}

/** The memory that a range lies in, for a thread that does not allocate from it. */
export function foreignMemory({ memoryId }: MemoryRange): SharedMemory {
  // Where there are no other threads, the one that has made the memory does their work.
  if (lent === undefined) takeLentMemory(memoryToLend());
  assert(lent?.id === memoryId, 'a range lies in the memory that was lent');
  return lent;
}

/**
 * Has the kernels of this thread work on a foreign memory while `use` runs, with the scratch that the memory's owner has lent. A call
 * that the scratch is too small for runs in the spare memory of this thread.
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
