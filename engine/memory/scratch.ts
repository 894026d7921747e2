import { assert } from '../terms/assert.js';
import { LogstrataError } from '../terms/errors.js';
import { kernelScratchBytesMax } from '../terms/limits.js';
import { alignedBytes, bufferBytes } from './allocator.js';
import { sharedMemory, SharedMemory } from './shared-memory.js';
import { createMemory, memoryPagesMax, type KernelMemory } from './wasm.js';

export type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

/** What slack and alignment add to the buffers of one call, of which there are twelve at most. */
const overheadBytesMax = 12 * bufferBytes(1);
const initialBytes = 1024 * 1024;

/** What the buffers of a call take together. */
function openedBytes(sizeBytes: number): number {
  return alignedBytes(sizeBytes) + overheadBytesMax;
}

function keptBytes(sizeBytes: number, callBytes: number): number {
  return bufferBytes(sizeBytes) + callBytes;
}

/** Scratch memory that `withKeptScratch` needs, where it is lent. */
export function keptScratchBytes(sizeBytes: number, callBytes: number): number {
  return openedBytes(keptBytes(sizeBytes, callBytes));
}

/**
 * Memory for the arguments of one call of a kernel at a time. An array that lies in the kernels' memory is worked on where
 * it is; of any other, what a call reads is copied in and what it writes is copied out. Addresses are valid until the next
 * `openScratch`.
 */
export abstract class Scratch {
  constructor(protected readonly shared: SharedMemory) {}

  /** What kernels are instantiated over to work on it. */
  get memory(): KernelMemory {
    return this.shared.memory;
  }

  /** The address of a new buffer, of any content. */
  abstract reserve(sizeBytes: number): number;

  /** The address of a new buffer of zeros. */
  reserveZeros(sizeBytes: number): number {
    const at = this.reserve(sizeBytes);
    this.view(at, sizeBytes).fill(0);
    return at;
  }

  /** The address of the elements [from, to) of `source`, to be read only. */
  place(source: TypedArray, from: number, to: number): number {
    if (this.shared.holds(source)) return source.byteOffset + from * source.BYTES_PER_ELEMENT;
    return this.copy(source, from, to);
  }

  /** The address of a new buffer with the elements [from, to) of `source`. */
  copy(source: TypedArray, from: number, to: number): number {
    const width = source.BYTES_PER_ELEMENT;
    const sizeBytes = (to - from) * width;
    const at = this.reserve(sizeBytes);
    this.view(at, sizeBytes).set(new Uint8Array(source.buffer, source.byteOffset + from * width, sizeBytes));
    return at;
  }

  /** The address that a kernel writes `count` elements to, which `copyOut` then copies to `target` from its element `to` on. */
  target(target: TypedArray, to: number, count: number): number {
    const width = target.BYTES_PER_ELEMENT;
    return this.shared.holds(target) ? target.byteOffset + to * width : this.reserve(count * width);
  }

  /** Copies the `count` elements at `address` to `target` from its element `to` on, unless they lie there. */
  copyOut(address: number, target: TypedArray, to: number, count: number): void {
    const width = target.BYTES_PER_ELEMENT;
    if (address === target.byteOffset + to * width && this.shared.holds(target)) return;
    new Uint8Array(target.buffer, target.byteOffset + to * width, count * width).set(
      this.view(address, count * width),
    );
  }

  /** The bytes of a buffer of this call, for what has to be done to them without a kernel: a view. */
  view(address: number, sizeBytes: number): Uint8Array {
    return this.shared.bytesAt({ address, sizeBytes });
  }
}

/** One range of the kernels' memory, which the buffers of a call share. */
class RangeScratch extends Scratch {
  #base = 0;
  #end = 0;
  #at = 0;
  /** Bytes from `#base` on that `keep` gave out. */
  #kept = 0;

  /** Frees every buffer and makes room for buffers of `sizeBytes` together; false when there is not as much. */
  open(sizeBytes: number): boolean {
    const needed = openedBytes(sizeBytes);
    const lent = this.shared.lentScratch;
    if (lent !== null && (lent.address !== this.#base || lent.address + lent.bytes !== this.#end))
      this.#occupy(lent.address, lent.bytes);
    const isFull = this.#base + this.#kept + needed > this.#end;
    // What is kept can't move, so that there is no enlarging then.
    if (isFull && (this.#kept > 0 || !this.#enlarge(needed))) return false;
    this.#at = this.#base + this.#kept;
    return true;
  }

  /**
   * A buffer that stays until `release`, over calls whose own buffers take `callBytes` at most; null when there is no room.
   */
  keep(sizeBytes: number, callBytes: number): Uint8Array | null {
    assert(this.#kept === 0, 'one buffer is kept at a time');
    if (!this.open(keptBytes(sizeBytes, callBytes))) return null;
    const at = this.reserve(sizeBytes);
    this.#kept = this.#at - this.#base;
    return this.view(at, sizeBytes);
  }

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
    // Doubling keeps the times that it is done few.
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

/** A memory of its own for calls that the kernels' memory has no room for. All arguments of such a call are copied. */
class SpareScratch extends Scratch {
  #addresses: number[] = [];

  constructor() {
    super(new SharedMemory(createMemory(1, memoryPagesMax)));
  }

  /** Frees every buffer. */
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
 * The thread's scratch memory, with room for buffers of `sizeBytes` together. Where the kernels' memory has not as much, because it is
 * full or what another thread has lent is small, it is a spare memory of the thread. Buffers that even that has no room for throw `limit`.
 */
export function openScratch(sizeBytes: number): Scratch {
  return openScratchWithin(sizeBytes) ?? (spare ??= new SpareScratch()).open();
}

/** As `openScratch` without the spare memory, for a caller that can do with less: null where there is not as much. */
export function openScratchWithin(sizeBytes: number): Scratch | null {
  const own = threadScratch();
  return own.open(sizeBytes) ? own : null;
}

/**
 * Has `use` work with a buffer of the scratch memory that stays over the calls of kernels, which need not copy what lies in
 * it. Their own buffers may take `callBytes`; calls that need more take the spare memory. Null where there is no such buffer.
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

/** What `count` elements of an array take of the scratch memory: nothing where they lie in the kernels' memory. */
export function scratchBytes(array: TypedArray, count: number): number {
  return sharedMemory().holds(array) ? 0 : count * array.BYTES_PER_ELEMENT;
}
