import { openScratch, scratchBytes, type Scratch, type TypedArray } from '../core/scratch.js';
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

/**
 * Calls `work` with the addresses of arrays in the kernels' memory: of those that are read, of which null has the address 0; of those that are
 * changed; and of buffers of some bytes, with undefined contents.
 */
export function onArrays<T>(
  read: readonly (TypedArray | null)[],
  changed: readonly TypedArray[],
  buffers: readonly number[],
  work: (kernels: Kernels, addresses: readonly number[], scratch: Scratch) => T,
): T {
  let sizeBytes = 0;
  for (const array of read) if (array !== null) sizeBytes += scratchBytes(array, array.length);
  for (const array of changed) sizeBytes += scratchBytes(array, array.length);
  for (const bytes of buffers) sizeBytes += bytes;
  const scratch = openScratch(sizeBytes);
  const addresses = [
    ...read.map((array) => (array === null ? 0 : scratch.place(array, 0, array.length))),
    ...changed.map((array) => scratch.place(array, 0, array.length)),
    ...buffers.map((bytes) => scratch.reserve(bytes)),
  ];
  const result = work(kernelsOver(scratch), addresses, scratch);
  for (const [i, array] of changed.entries())
    scratch.copyOut(addresses[read.length + i]!, array, 0, array.length);
  return result;
}
