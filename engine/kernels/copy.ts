import { openScratchWithin } from '../memory/scratch.js';
import { kernelsOver, type Kernels } from './kernels.js';
import { sharedMemory } from '../memory/shared-memory.js';

/** Fewer bytes are copied faster than a kernel is called. */
const kernelBytesMin = 64;

/**
 * The kernels, where both arrays lie in their memory; else null, since copying the arguments would be the whole work. Within that memory,
 * which threads share, the JavaScript engine copies byte by byte, so that the kernel is faster.
 */
function kernelsOfBoth(a: ArrayBufferView, b: ArrayBufferView): Kernels | null {
  const memory = sharedMemory();
  return memory.holds(a) && memory.holds(b) ? kernelsOver(memory) : null;
}

/** Copies source[from, to) to `target` from `at` on. */
export function copyBytes(
  source: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): void {
  const kernels = to - from < kernelBytesMin ? null : kernelsOfBoth(source, target);
  if (kernels === null) target.set(source.subarray(from, to), at);
  else kernels.copyBytes(target.byteOffset + at, source.byteOffset + from, to - from);
}

/** Copied at once on the way out of the kernels' memory: it stays in a core's cache. */
const pieceBytes = 64 * 1024;
const wordBytes = 8;

/**
 * Copies `source`, which may lie in the memory that threads share, to `target`, which does not, from `at` on. Between those the
 * JavaScript engine copies byte by byte, unless both begin at the same place of a word. A kernel moves the bytes to such a place first.
 */
export function copyFromShared(source: Uint8Array, target: Uint8Array, at: number): void {
  const targetAt = target.byteOffset + at;
  const isInStep = source.byteOffset % wordBytes === targetAt % wordBytes;
  const isShared = !isInStep && source.length >= kernelBytesMin && sharedMemory().holds(source);
  const scratch = isShared ? openScratchWithin(pieceBytes + wordBytes) : null;
  if (scratch === null) {
    target.set(source, at);
    return;
  }
  const piece = scratch.reserve(pieceBytes + wordBytes) + (targetAt % wordBytes);
  for (let done = 0; done < source.length; done += pieceBytes) {
    const length = Math.min(pieceBytes, source.length - done);
    kernelsOver(scratch).copyBytes(piece, source.byteOffset + done, length);
    target.set(scratch.view(piece, length), at + done);
  }
}

/** Copies source[from, to) to `target` from `at` on, each with `shift` added to it, modulo 2^32. */
export function copyShifted(
  source: Uint32Array,
  from: number,
  to: number,
  shift: number,
  target: Uint32Array,
  at: number,
): void {
  const kernels = (to - from) * 4 < kernelBytesMin ? null : kernelsOfBoth(source, target);
  if (kernels === null) for (let i = from; i < to; i++) target[at + i - from] = source[i]! + shift;
  else kernels.copyShifted(target.byteOffset + at * 4, source.byteOffset + from * 4, to - from, shift);
}
