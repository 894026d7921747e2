import * as plain from '../copy.js';
import { sharedMemory } from '../shared-memory.js';
import type { Kernels } from '../wasm.js';

/** Fewer bytes are copied by the plain twin before a kernel has begun. */
const kernelBytesMin = 64;

/**
 * The kernels, where both arrays lie in their memory. There is no copying arguments for what only copies; but within that memory,
 * which threads share, the engine's own copies go byte by byte.
 */
function kernelsOver(a: ArrayBufferView, b: ArrayBufferView): Kernels | null {
  const memory = sharedMemory();
  return memory !== null && memory.holds(a) && memory.holds(b) ? memory.kernels : null;
}

/** As the twin. */
export function copyBytes(
  source: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): void {
  const kernels = to - from < kernelBytesMin ? null : kernelsOver(source, target);
  if (kernels === null) plain.copyBytes(source, from, to, target, at);
  else kernels.copyBytes(target.byteOffset + at, source.byteOffset + from, to - from);
}

/** As the twin. */
export function copyShifted(
  source: Uint32Array,
  from: number,
  to: number,
  shift: number,
  target: Uint32Array,
  at: number,
): void {
  const kernels = (to - from) * 4 < kernelBytesMin ? null : kernelsOver(source, target);
  if (kernels === null) plain.copyShifted(source, from, to, shift, target, at);
  else kernels.copyShifted(target.byteOffset + at * 4, source.byteOffset + from * 4, to - from, shift);
}
