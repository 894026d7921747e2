import { crc32 as nodeCrc32 } from 'node:zlib';
import { openScratchWithin, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** For fewer bytes the fixed cost of the kernel is more than it saves. */
const kernelBytesMin = 32 * 1024;
const blockBytes = 16;
const remainderBytes = 4800;

/** Scratch bytes that a call needs where `bytes` is in the kernels' memory. */
export const crc32RoomBytes = 3 * remainderBytes + blockBytes;

/**
 * The CRC-32 of `bytes`; with `before`, the CRC-32 of a text whose CRC-32 is `before`, followed by `bytes`. Node's implementation takes
 * about four times as long as the kernel. The kernel reduces the text to 4800 bytes, and Node computes the rest; it also computes what is
 * short or not in the kernels' memory.
 */
export function crc32(bytes: Uint8Array, before = 0): number {
  // Copying bytes into the kernels' memory would cost most of what the kernel gains.
  const isForKernel = bytes.length >= kernelBytesMin && scratchBytes(bytes, bytes.length) === 0;
  const scratch = isForKernel ? openScratchWithin(crc32RoomBytes) : null;
  if (scratch === null) return nodeCrc32(bytes, before);
  const blocks = Math.floor(bytes.length / blockBytes);
  const rest = bytes.subarray(blocks * blockBytes);
  const roomAt = scratch.reserve(crc32RoomBytes);
  // The state of a CRC-32 starts as the complement of the checksum so far, and is XORed with the first four bytes.
  kernelsOver(scratch).reduceCrc32(scratch.place(bytes, 0, bytes.length), blocks, ~before, roomAt);
  const reduced = scratch.view(roomAt + 2 * remainderBytes, remainderBytes + rest.length);
  reduced.set(rest, remainderBytes);
  return nodeCrc32(reduced, 0xffffffff);
}
