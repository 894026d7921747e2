import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert } from '../terms/assert.js';
import { LogstrataError } from '../terms/errors.js';

/**
 * A memory that kernels work on, which threads can share. Once it has grown, `buffer` is another object, longer, over the same bytes;
 * views of the older ones stay valid.
 */
export interface KernelMemory {
  readonly buffer: SharedArrayBuffer;
  /** Adds pages of 64 KiB; throws RangeError when there is no room for them. */
  grow(pages: number): number;
}

/** The parts of the WebAssembly JavaScript API that are used. TypeScript has its types only among the browser's. */
interface WebAssemblyApi {
  readonly Memory: new (bounds: { initial: number; maximum: number; shared: boolean }) => KernelMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: { env: { memory: KernelMemory } },
  ) => { readonly exports: Readonly<Record<string, unknown>> };
  validate(bytes: Uint8Array): boolean;
}

const api = (globalThis as unknown as { WebAssembly?: WebAssemblyApi }).WebAssembly;

/** The largest memory that 32-bit addresses reach. */
export const memoryPagesMax = 65536;
export const memoryPageBytes = 65536;

/**
 * Modules of kernels have their own data at the beginning of the memory that they share, each of them elsewhere (`memoryBase` in the
 * `asconfig.json` of each). This is the first byte behind all of it, where callers may begin.
 */
export const moduleDataEnd = 4096;

/** A module of one function that gives a vector: `i32.const 0`, `i8x16.splat`. */
const simdModule = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b],
  ...[0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0xfd, 0x0f, 0x0b],
);

/** A memory of `pages`, which may grow to `pagesMax`. Throws RangeError where the machine has no room, `unsupported` where kernels can't run. */
export function createMemory(pages: number, pagesMax: number): KernelMemory {
  const { Memory } = webAssembly();
  return new Memory({ initial: pages, maximum: pagesMax, shared: true });
}

/** Throws `unsupported` where kernels can't run. */
export function requireSimd(): void {
  webAssembly();
}

function webAssembly(): WebAssemblyApi {
  if (api?.validate(simdModule)) return api;
  throw new LogstrataError(
    'unsupported',
    `this Node (${process.version}, ${process.arch}) can't run WebAssembly with SIMD, which all reading and writing needs: ` +
      'take a 64-bit Node on a processor with SSE4.1 or Neon, and none of its options that switch WebAssembly off, as --jitless does',
  );
}

/** A module of kernels, which share the memory that it is instantiated over. It is compiled when it is first asked for. */
export class KernelModule<Kernels extends object> {
  #compiled: object | undefined;
  readonly #instances = new WeakMap<KernelMemory, Kernels>();
  #latestMemory: KernelMemory | undefined;
  #latest: Kernels | undefined;

  /** @param path of the file, from the root of what is built */
  constructor(private readonly path: string) {}

  /** The kernels over a memory. Throws `unsupported` where they can't run. */
  over(memory: KernelMemory): Kernels {
    if (memory !== this.#latestMemory || this.#latest === undefined) {
      this.#latest = this.#instances.get(memory) ?? this.#instantiate(memory);
      this.#latestMemory = memory;
    }
    return this.#latest;
  }

  #instantiate(memory: KernelMemory): Kernels {
    const { Module, Instance } = webAssembly();
    this.#compiled ??= new Module(readFileSync(this.#file()));
    const { exports } = new Instance(this.#compiled, { env: { memory } });
    const { dataEnd } = exports;
    assert(typeof dataEnd === 'function' && dataEnd() <= moduleDataEnd, `${this.path} keeps to its place`);
    const kernels = exports as Kernels;
    this.#instances.set(memory, kernels);
    return kernels;
  }

  #file(): string {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    // Code that runs from its sources has the module where it is built to.
    const file = [join(root, this.path), join(root, 'dist', this.path)].find((place) => existsSync(place));
    assert(file !== undefined, `${this.path} has been built (npm run build)`);
    return file;
  }
}
