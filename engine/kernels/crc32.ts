import { crc32 as nodeCrc32 } from 'node:zlib';
import { openScratchWithin, scratchBytes } from '../memory/scratch.js';
import { kernelsOver } from './kernels.js';

/** Below this the fixed work of a call takes longer than what the kernel saves. */
const kernelBytesMin = 32 * 1024;
const blockBytes = 16;
const remainderBytes = 4800;

/** Scratch memory that a call takes where the bytes lie in the kernels' memory. */
export const crc32RoomBytes = 3 * remainderBytes + blockBytes;

/**
 * The crc32 of `bytes`, or of what has the crc32 `before` and them. Node's takes about four times as long as the kernel, which leaves it
 * the last bytes, and all of what is short or lies elsewhere.
 */
export function crc32(bytes: Uint8Array, before = 0): number {
  // Bytes of another memory would have to be copied, which is most of what there is to be gained.
  const isForKernel = bytes.length >= kernelBytesMin && scratchBytes(bytes, bytes.length) === 0;
  const scratch = isForKernel ? openScratchWithin(crc32RoomBytes) : null;
  if (scratch === null) return nodeCrc32(bytes, before);
  const blocks = Math.floor(bytes.length / blockBytes);
  const rest = bytes.subarray(blocks * blockBytes);
  const roomAt = scratch.reserve(crc32RoomBytes);
  // The register of a crc32 begins as the complement of the sum before, and is added to what comes first.
  kernelsOver(scratch).reduceCrc32(scratch.place(bytes, 0, bytes.length), blocks, ~before, roomAt);
  const reduced = scratch.view(roomAt + 2 * remainderBytes, remainderBytes + rest.length);
  reduced.set(rest, remainderBytes);
  return nodeCrc32(reduced, 0xffffffff);
}
