import { openScratchWithin } from '../core/scratch.js';
import { kernelsOver, type Kernels } from './kernels.js';
import { sharedMemory } from '../core/shared-memory.js';

/** For fewer bytes a copy in JavaScript is faster than calling a kernel. */
const kernelBytesMin = 64;

/**
 * The kernels, if both arrays are in their memory; else null, because copying the arguments would be the whole work. The kernels' memory is
 * shared between threads. Within shared memory the JavaScript engine copies byte by byte, so a kernel is faster.
 */
function kernelsOfBoth(a: ArrayBufferView, b: ArrayBufferView): Kernels | null {
  const memory = sharedMemory();
  return memory.holds(a) && memory.holds(b) ? kernelsOver(memory) : null;
}

/** Copies source[from, to) to `target` from offset `at` on. */
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

/** Copies the words source[from, to) to `target` from index `at` on. */
export function copyWords(
  source: Int32Array,
  from: number,
  to: number,
  target: Int32Array,
  at: number,
): void {
  const kernels = (to - from) * 4 < kernelBytesMin ? null : kernelsOfBoth(source, target);
  if (kernels === null) target.set(source.subarray(from, to), at);
  else kernels.copyBytes(target.byteOffset + at * 4, source.byteOffset + from * 4, (to - from) * 4);
}

/** Bytes per step of `copyFromShared`, so that they stay in the core's cache between its two copies. */
const pieceBytes = 64 * 1024;
const wordBytes = 8;

/**
 * Copies `source` to `target` from offset `at` on. `source` may be in memory that threads share, `target` must not be. The JavaScript
 * engine copies between those byte by byte, unless the addresses of both have the same remainder modulo the word size. So a kernel first
 * moves the bytes to an address with that remainder.
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

/** Copies source[from, to) to `target` from index `at` on, and adds `shift` to each element, modulo 2^32. */
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
