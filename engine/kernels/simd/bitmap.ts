import * as plain from '../bitmap.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many bytes of a bitmap a call and its copies cost more than the plain twin. */
const kernelBytesMin = 256;

/** As the twin. */
export function andRange(bits: Uint8Array, other: Uint8Array, from: number, to: number): void {
  const first = from >> 3;
  const end = (to + 7) >> 3;
  const scratch =
    end - first < kernelBytesMin
      ? null
      : openScratch(scratchBytes(bits, end - first) + scratchBytes(other, end - first));
  if (scratch === null) {
    plain.andRange(bits, other, from, to);
    return;
  }
  // The bits are read as well as written: where they don't lie in the memory, a copy goes in and comes back.
  const bitsAt = scratch.place(bits, first, end);
  const otherAt = scratch.place(other, first, end);
  kernelsOver(scratch).andRange(bitsAt - first, otherAt - first, from, to);
  scratch.take(bitsAt, bits, first, end - first);
}

/** As the twin. */
export function countRange(bits: Uint8Array, from: number, to: number): number {
  const first = (from >> 6) << 3;
  const end = Math.min(bits.length, (to + 7) >> 3);
  const scratch = end - first < kernelBytesMin ? null : openScratch(scratchBytes(bits, end - first));
  if (scratch === null) return plain.countRange(bits, from, to);
  return kernelsOver(scratch).countRange(scratch.place(bits, first, end) - first, from, to);
}

/** As the twin. */
export function listRange(
  bits: Uint8Array,
  from: number,
  to: number,
  rows: Uint16Array | Uint32Array,
  at: number,
): number {
  const first = (from >> 6) << 3;
  const end = Math.min(bits.length, (to + 7) >> 3);
  const room = Math.min(rows.length - at, to - from);
  const scratch =
    end - first < kernelBytesMin
      ? null
      : openScratch(scratchBytes(bits, end - first) + scratchBytes(rows, room));
  if (scratch === null) return plain.listRange(bits, from, to, rows, at);
  const rowsAt = scratch.target(rows, at, room);
  const bitsAt = scratch.place(bits, first, end) - first;
  const kernels = kernelsOver(scratch);
  const listed =
    rows instanceof Uint16Array
      ? kernels.listFirst16(bitsAt, from, to, room, rowsAt)
      : kernels.listFirst(bitsAt, from, to, room, rowsAt);
  scratch.take(rowsAt, rows, at, listed);
  return at + listed;
}

/** As the twin. */
export function spreadBits(bits: Uint8Array, count: number, bytes: Uint8Array): void {
  const bitsBytes = (count + 7) >> 3;
  const scratch = bitsBytes < kernelBytesMin ? null : openScratch(scratchBytes(bits, bitsBytes) + count);
  if (scratch === null) {
    plain.spreadBits(bits, count, bytes);
    return;
  }
  const bytesAt = scratch.room(count);
  kernelsOver(scratch).spreadBits(scratch.place(bits, 0, bitsBytes), count, bytesAt);
  scratch.take(bytesAt, bytes, 0, count);
}
