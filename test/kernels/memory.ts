import { kernelsOver, type Kernels } from '../../engine/kernels/kernels.js';
import { createMemory, moduleDataEnd } from '../../engine/core/wasm.js';

type TypedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | Float64Array;

/** Bytes behind a buffer that kernels may access. */
const paddingBytes = 64;
const guard = 0xa5;

/**
 * A kernel memory from `base` on, which may lie beyond 2 GiB, filled with a guard pattern. Buffers begin at odd addresses, so that no
 * kernel may rely on alignment.
 */
export class TestMemory {
  readonly kernels: Kernels;
  readonly bytes: Uint8Array;
  readonly #base: number;
  #at: number;

  /** Null if the machine does not provide that much memory. */
  static create(base: number, sizeBytes: number): TestMemory | null {
    const pages = Math.ceil((base + sizeBytes) / 65536);
    try {
      const memory = createMemory(pages, pages);
      const bytes = new Uint8Array(memory.buffer);
      return new TestMemory(kernelsOver({ memory }), bytes, Math.max(base, moduleDataEnd), sizeBytes);
    } catch (error) {
      if (error instanceof RangeError) return null;
      throw error;
    }
  }

  private constructor(kernels: Kernels, bytes: Uint8Array, base: number, sizeBytes: number) {
    this.kernels = kernels;
    this.bytes = bytes;
    this.#base = base;
    this.#at = base;
    bytes.fill(guard, base, Math.min(bytes.length, base + sizeBytes));
  }

  /** Frees every buffer. */
  reset(): void {
    this.bytes.fill(guard, this.#base, this.#at);
    this.#at = this.#base;
  }

  room(sizeBytes: number): number {
    const at = this.#at + 1;
    this.#at = at + sizeBytes + paddingBytes;
    return at;
  }

  place(source: TypedArray): number {
    const at = this.room(source.byteLength);
    this.bytes.set(new Uint8Array(source.buffer, source.byteOffset, source.byteLength), at);
    return at;
  }

  take(at: number, sizeBytes: number): Uint8Array {
    return this.bytes.slice(at, at + sizeBytes);
  }
}
