import { assert } from '../assert.js';
import { kernelScratchBytesMax } from '../limits.js';
import { instantiateKernels, memoryPageBytes, type KernelMemory, type Kernels } from './wasm.js';

type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

/** Kernels read and write in vectors, up to this much behind the end of a buffer. */
const slackBytes = 64;
/** What slack and alignment add to the buffers of one call, of which there are ten at most. */
const overheadBytesMax = 10 * 2 * slackBytes;
const initialBytes = 4 * 1024 * 1024;

/**
 * The kernels with a memory for the arguments of one call at a time: what a call reads is copied in, what it writes is
 * copied out. Addresses are valid until the next `openScratch`.
 */
export class Scratch {
  readonly kernels: Kernels;
  readonly #memory: KernelMemory;
  readonly #base: number;
  #bytes: Uint8Array;
  #at: number;

  constructor(kernels: Kernels, memory: KernelMemory) {
    this.kernels = kernels;
    this.#memory = memory;
    this.#base = aligned(kernels.scratchBase());
    this.#at = this.#base;
    this.#bytes = new Uint8Array(memory.buffer);
  }

  /** Frees every buffer and makes room for buffers of `sizeBytes` together; false when there is not as much. */
  open(sizeBytes: number): boolean {
    this.#at = this.#base;
    const needed = this.#base + sizeBytes + overheadBytesMax;
    if (needed <= this.#bytes.length) return true;
    if (needed > kernelScratchBytesMax) return false;
    // Doubling keeps the copies that growing may cost few.
    const wanted = Math.min(kernelScratchBytesMax, Math.max(needed, 2 * this.#bytes.length));
    try {
      this.#memory.grow(Math.ceil((wanted - this.#bytes.length) / memoryPageBytes));
    } catch {
      return false;
    }
    this.#bytes = new Uint8Array(this.#memory.buffer);
    return true;
  }

  /** The address of a new buffer, of any content. */
  room(sizeBytes: number): number {
    const at = this.#at;
    this.#at = aligned(at + sizeBytes) + slackBytes;
    assert(this.#at <= this.#bytes.length, 'the buffers of a call fit the scratch memory');
    return at;
  }

  /** The address of a new buffer of zeros. */
  clear(sizeBytes: number): number {
    const at = this.room(sizeBytes);
    this.#bytes.fill(0, at, at + sizeBytes);
    return at;
  }

  /** The address of a new buffer with the elements [from, to) of `source`. */
  place(source: TypedArray, from: number, to: number): number {
    const width = source.BYTES_PER_ELEMENT;
    const at = this.room((to - from) * width);
    this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset + from * width, (to - from) * width), at);
    return at;
  }

  /** Copies the `count` elements at `address` to `target` from its element `to` on. */
  take(address: number, target: TypedArray, to: number, count: number): void {
    const width = target.BYTES_PER_ELEMENT;
    new Uint8Array(target.buffer, target.byteOffset + to * width, count * width).set(
      this.#bytes.subarray(address, address + count * width),
    );
  }
}

/** Vectors and words are read fastest from multiples of their size. */
function aligned(address: number): number {
  return Math.ceil(address / slackBytes) * slackBytes;
}

let scratch: Scratch | null | undefined;

/**
 * The thread's scratch memory, with room for buffers of `sizeBytes` together. Null where kernels can't run or the bound
 * is passed: then the caller takes the plain twin.
 */
export function openScratch(sizeBytes: number): Scratch | null {
  if (scratch === undefined) {
    const instance = instantiateKernels(
      initialBytes / memoryPageBytes,
      kernelScratchBytesMax / memoryPageBytes,
    );
    scratch = instance === null ? null : new Scratch(instance.kernels, instance.memory);
  }
  return scratch !== null && scratch.open(sizeBytes) ? scratch : null;
}
