import { kernelsOver, type Kernels } from '../engine/kernels/kernels.js';
import { createMemory, memoryPageBytes, moduleDataEnd } from '../engine/core/wasm.js';

type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

const paddingBytes = 64;

/** Memory for kernels with columns in it, as in the engine's buffer pool. */
export class KernelMemory {
  readonly kernels: Kernels;
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(sizeBytes: number) {
    const pages = Math.ceil(sizeBytes / memoryPageBytes);
    const memory = createMemory(pages, pages);
    this.kernels = kernelsOver({ memory });
    this.#bytes = new Uint8Array(memory.buffer);
    this.#at = moduleDataEnd;
  }

  /** Allocates a buffer. Returns its address. */
  room(sizeBytes: number): number {
    const at = this.#at;
    this.#at = (Math.ceil((at + sizeBytes) / paddingBytes) + 1) * paddingBytes;
    return at;
  }

  /** Copies `source` into a new buffer. Returns its address. */
  place(source: TypedArray): number {
    const at = this.room(source.byteLength);
    this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset, source.byteLength), at);
    return at;
  }

  /** A view of the bytes at an address. */
  view(at: number, sizeBytes: number): Uint8Array {
    return this.#bytes.subarray(at, at + sizeBytes);
  }
}
