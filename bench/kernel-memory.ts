import { kernelsOver, type Kernels } from '../engine/kernels/kernels.js';
import { createMemory, memoryPageBytes, moduleDataEnd } from '../engine/memory/wasm.js';

type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

const slackBytes = 64;

/** A memory of kernels that columns lie in, as those of the buffer pool will. */
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

  /** The address of a new buffer. */
  room(sizeBytes: number): number {
    const at = this.#at;
    this.#at = (Math.ceil((at + sizeBytes) / slackBytes) + 1) * slackBytes;
    return at;
  }

  /** The address of a copy of `source`. */
  place(source: TypedArray): number {
    const at = this.room(source.byteLength);
    this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset, source.byteLength), at);
    return at;
  }

  /** What lies at an address: a view. */
  view(at: number, sizeBytes: number): Uint8Array {
    return this.#bytes.subarray(at, at + sizeBytes);
  }
}
