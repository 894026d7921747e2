import { KernelModule, type KernelMemory } from '../core/wasm.js';
import type { Exports } from './exports.js';

/**
 * The exports of kernels.wasm, as the build declares them; the sources in `kernels/assembly/` describe them. Addresses are offsets in the memory
 * that the instance was made with. Counts are unsigned; results are signed 32-bit integers.
 */
export type Kernels = Exports;

const module = new KernelModule<Kernels>('engine/kernels/kernels.wasm');

/** The kernels over a memory. Throws `unsupported` where this version of Node can't run them. */
export function kernelsOver({ memory }: { readonly memory: KernelMemory }): Kernels {
  return module.over(memory);
}
