import { assert, LogstrataError } from './errors.js';
import { kernelScratchBytesMax } from './limits.js';
import { alignedBytes, bufferBytes } from './allocator.js';
import { sharedMemory, SharedMemory } from './shared-memory.js';
import { createMemory, memoryPagesMax, type KernelMemory } from './wasm.js';

/** The arrays that kernels take as arguments. */
export type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

/** What padding and alignment add to the buffers of one call. A call has at most twelve buffers. */
const overheadBytesMax = 12 * bufferBytes(1);
const initialBytes = 1024 * 1024;

/** Bytes that the buffers of a call take, when they have `sizeBytes` bytes in total. */
function openedBytes(sizeBytes: number): number {
  return alignedBytes(sizeBytes) + overheadBytesMax;
}

function keptBytes(sizeBytes: number, callBytes: number): number {
  return bufferBytes(sizeBytes) + callBytes;
}

/** Scratch bytes that `withKeptScratch` needs. For a thread that lends scratch memory to another. */
export function keptScratchBytes(sizeBytes: number, callBytes: number): number {
  return openedBytes(keptBytes(sizeBytes, callBytes));
}

/**
 * Memory for the arguments of one kernel call at a time. A kernel works in place on an array that is in its memory. Of any other array,
 * what the kernel reads is copied in, and what it writes is copied out. Addresses are valid until the next `openScratch`.
 */
export abstract class Scratch {
  constructor(protected readonly shared: SharedMemory) {}

  /** The memory that the kernels must be instantiated over. */
  get memory(): KernelMemory {
    return this.shared.memory;
  }

  /** The address of a new buffer, with undefined contents. */
  abstract reserve(sizeBytes: number): number;

  /** The address of a new buffer of zeros. */
  reserveZeros(sizeBytes: number): number {
    const at = this.reserve(sizeBytes);
    this.view(at, sizeBytes).fill(0);
    return at;
  }

  /** The address of the elements [from, to) of `source`. A kernel may read them there; it may only write if `copyOut` follows. */
  place(source: TypedArray, from: number, to: number): number {
    if (this.shared.holds(source)) return source.byteOffset + from * source.BYTES_PER_ELEMENT;
    return this.copy(source, from, to);
  }

  /** The address of a new buffer with a copy of the elements [from, to) of `source`. */
  copy(source: TypedArray, from: number, to: number): number {
    const width = source.BYTES_PER_ELEMENT;
    const sizeBytes = (to - from) * width;
    const at = this.reserve(sizeBytes);
    this.view(at, sizeBytes).set(new Uint8Array(source.buffer, source.byteOffset + from * width, sizeBytes));
    return at;
  }

  /**
   * The address where a kernel should write `count` elements for `target`, from index `to` on. Call `copyOut` with the same arguments
   * afterwards.
   */
  target(target: TypedArray, to: number, count: number): number {
    const width = target.BYTES_PER_ELEMENT;
    return this.shared.holds(target) ? target.byteOffset + to * width : this.reserve(count * width);
  }

  /** Copies the `count` elements at `address` to `target`, from index `to` on, unless they are already there. */
  copyOut(address: number, target: TypedArray, to: number, count: number): void {
    const width = target.BYTES_PER_ELEMENT;
    if (address === target.byteOffset + to * width && this.shared.holds(target)) return;
    new Uint8Array(target.buffer, target.byteOffset + to * width, count * width).set(
      this.view(address, count * width),
    );
  }

  /** A view of the bytes of a buffer of this call, for work without a kernel. */
  view(address: number, sizeBytes: number): Uint8Array {
    return this.shared.bytesAt({ address, sizeBytes });
  }
}

/** One range of the kernels' memory, which the buffers of a call share. */
class RangeScratch extends Scratch {
  #base = 0;
  #end = 0;
  #at = 0;
  /** Bytes from `#base` on that `keep` has allocated. */
  #kept = 0;

  /** Frees all buffers of the last call, and makes room for buffers of `sizeBytes` in total. False where there is not enough memory. */
  open(sizeBytes: number): boolean {
    const needed = openedBytes(sizeBytes);
    const lent = this.shared.lentScratch;
    if (lent !== null && (lent.address !== this.#base || lent.address + lent.bytes !== this.#end))
      this.#occupy(lent.address, lent.bytes);
    const isFull = this.#base + this.#kept + needed > this.#end;
    // A kept buffer can't move, so the range can't be enlarged then.
    if (isFull && (this.#kept > 0 || !this.#enlarge(needed))) return false;
    this.#at = this.#base + this.#kept;
    return true;
  }

  /**
   * Allocates a buffer that is valid until `release`. Calls in between may use buffers of up to `callBytes`. Null when there is no room.
   */
  keep(sizeBytes: number, callBytes: number): Uint8Array | null {
    assert(this.#kept === 0, 'one buffer is kept at a time');
    if (!this.open(keptBytes(sizeBytes, callBytes))) return null;
    const at = this.reserve(sizeBytes);
    this.#kept = this.#at - this.#base;
    return this.view(at, sizeBytes);
  }

  /** Frees the buffer that `keep` has allocated. */
  release(): void {
    this.#kept = 0;
  }

  override reserve(sizeBytes: number): number {
    const at = this.#at;
    this.#at = at + bufferBytes(sizeBytes);
    assert(this.#at <= this.#end, 'the buffers of a call fit the scratch memory');
    return at;
  }

  #enlarge(needed: number): boolean {
    const { shared } = this;
    if (shared.isForeign || needed > kernelScratchBytesMax) return false;
    const knownBytes = this.#end - this.#base;
    // Doubling makes enlargements rare.
    const wanted = Math.min(kernelScratchBytesMax, Math.max(initialBytes, needed, 2 * knownBytes));
    if (knownBytes > 0) shared.free(this.#base);
    const address = shared.allocate(wanted) ?? shared.allocate(needed);
    if (address === null) this.#occupy(0, 0);
    else this.#occupy(address, shared.sizeOf(address));
    return address !== null;
  }

  #occupy(address: number, sizeBytes: number): void {
    this.#base = address;
    this.#end = address + sizeBytes;
    this.#at = address;
  }
}

/** A separate memory for calls that the kernels' memory has no room for. All arguments of such a call are copied. */
class SpareScratch extends Scratch {
  #addresses: number[] = [];

  constructor() {
    super(new SharedMemory(createMemory(1, memoryPagesMax)));
  }

  /** Frees all buffers of the last call. */
  open(): this {
    for (const address of this.#addresses) this.shared.free(address);
    this.#addresses = [];
    return this;
  }

  override reserve(sizeBytes: number): number {
    const address = this.shared.allocate(bufferBytes(sizeBytes));
    if (address === null)
      throw new LogstrataError(
        'limit',
        `a call of a kernel wants ${bufferBytes(sizeBytes)} bytes more than it has taken of ${kernelScratchBytesMax}, ` +
          'or than the machine has',
      );
    this.#addresses.push(address);
    return address;
  }
}

let spare: SpareScratch | undefined;
const scratches = new WeakMap<SharedMemory, RangeScratch>();
let latest: SharedMemory | undefined;
let latestScratch: RangeScratch | undefined;

function threadScratch(): RangeScratch {
  const memory = sharedMemory();
  if (memory !== latest || latestScratch === undefined) {
    latest = memory;
    latestScratch = scratchOf(memory);
  }
  return latestScratch;
}

function scratchOf(memory: SharedMemory): RangeScratch {
  let scratch = scratches.get(memory);
  if (scratch === undefined) {
    scratch = new RangeScratch(memory);
    scratches.set(memory, scratch);
  }
  return scratch;
}

/**
 * Opens the thread's scratch memory with room for buffers of `sizeBytes` in total. Where the kernels' memory has no room, because it is
 * full or because the scratch range that another thread has lent is too small, a separate memory of this thread is used. Allocating a
 * buffer throws `limit` where even that is exhausted.
 */
export function openScratch(sizeBytes: number): Scratch {
  return openScratchWithin(sizeBytes) ?? (spare ??= new SpareScratch()).open();
}

/** Like `openScratch` without the separate memory, for callers that can do with less. Null where there is no room. */
export function openScratchWithin(sizeBytes: number): Scratch | null {
  const own = threadScratch();
  return own.open(sizeBytes) ? own : null;
}

/**
 * Calls `use` with a buffer of the scratch memory that stays valid over kernel calls. Kernels work on it in place. Their other buffers may
 * take `callBytes`; calls that need more use the separate memory. `kept` is null where there is no room for the buffer.
 */
export function withKeptScratch<T>(
  sizeBytes: number,
  callBytes: number,
  use: (kept: Uint8Array | null) => T,
): T {
  const own = threadScratch();
  const kept = own.keep(sizeBytes, callBytes);
  try {
    return use(kept);
  } finally {
    own.release();
  }
}

/** Scratch bytes that `count` elements of an array need: none where the array is in the kernels' memory. */
export function scratchBytes(array: TypedArray, count: number): number {
  return sharedMemory().holds(array) ? 0 : count * array.BYTES_PER_ELEMENT;
}
