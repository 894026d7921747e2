import { type KernelMemory, KernelModule } from '../../engine/index.js';
import type { Exports } from './exports.js';

/**
 * The exports of decode.wasm, as the build declares them; the sources in `assembly/` describe them. Addresses are offsets in the memory that
 * the instance was made with; counts are unsigned, results signed 32-bit integers.
 */
export type LineKernels = Exports;

const module = new KernelModule<LineKernels>('agents/decode/decode.wasm');

/** The line kernels over a memory. Throws `unsupported` where this Node can't run them. */
export function lineKernelsOver({ memory }: { readonly memory: KernelMemory }): LineKernels {
  return module.over(memory);
}
