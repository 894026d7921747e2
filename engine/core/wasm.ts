import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, LogstrataError } from './errors.js';

/**
 * A memory that kernels work on and that threads can share. After it has grown, `buffer` is another, longer object over the same bytes;
 * views of the older ones stay valid.
 */
export interface KernelMemory {
  readonly buffer: SharedArrayBuffer;
  /** Adds pages of 64 KiB. Throws RangeError when there is no room for them. */
  grow(pages: number): number;
}

/** The parts of the WebAssembly API that are used. TypeScript only declares them in its browser library. */
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

/** The largest memory that 32-bit addresses can reach: 4 GiB. */
export const memoryPagesMax = 65536;
/** Bytes of a page, the unit in which memories grow. */
export const memoryPageBytes = 65536;

/**
 * First address after the static data of all kernel modules, from which callers may allocate. The modules share the start of the memory;
 * each has its data at its own `memoryBase`, see its `asconfig.json`.
 */
export const moduleDataEnd = 4096;

/** A module with one function that returns a vector: `i32.const 0`, `i8x16.splat`. It is only valid where SIMD is supported. */
const simdModule = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b],
  ...[0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0xfd, 0x0f, 0x0b],
);

/**
 * A memory of `pages` pages, which may grow to `pagesMax`. Throws RangeError where the machine has not enough memory, and `unsupported`
 * where kernels can't run.
 */
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
    `this Node (${process.version}, ${process.arch}) can't run WebAssembly with SIMD, which Logstrata needs to read and write: ` +
      'use a 64-bit Node on a processor with SSE4.1 or Neon, without options that disable WebAssembly, such as --jitless',
  );
}

/** A kernel module. It is compiled at first use, and instantiated once for each memory. */
export class KernelModule<Kernels extends object> {
  #compiled: object | undefined;
  readonly #instances = new WeakMap<KernelMemory, Kernels>();
  #latestMemory: KernelMemory | undefined;
  #latest: Kernels | undefined;

  /** @param path the path of the file, relative to the root of the build output */
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
    // When the program runs from its sources, the module is in the build output.
    const file = [join(root, this.path), join(root, 'dist', this.path)].find((place) => existsSync(place));
    assert(file !== undefined, `${this.path} has been built (npm run build)`);
    return file;
  }
}
