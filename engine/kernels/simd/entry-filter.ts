import * as plain from '../entry-filter.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many entries a call and its copies cost more than the plain twin. */
const kernelEntriesMin = 64;

/** As the twin. */
export function addEntries(
  offsets: Uint32Array,
  bytes: Uint8Array,
  entries: number,
  shift: number,
  bitmap: Uint8Array,
): void {
  const start = offsets[0]!;
  const end = offsets[entries]!;
  const scratch =
    entries < kernelEntriesMin
      ? null
      : openScratch(
          scratchBytes(bytes, end - start) +
            scratchBytes(offsets, entries + 1) +
            scratchBytes(bitmap, bitmap.length),
        );
  if (scratch === null) {
    plain.addEntries(offsets, bytes, entries, shift, bitmap);
    return;
  }
  const bytesAt = scratch.place(bytes, start, end) - start;
  const offsetsAt = scratch.place(offsets, 0, entries + 1);
  // The bits are read as well as written: where they don't lie in the memory, a copy goes in and comes back.
  const bitmapAt = scratch.place(bitmap, 0, bitmap.length);
  kernelsOver(scratch).addEntries(bytesAt, offsetsAt, entries, shift, bitmapAt);
  scratch.take(bitmapAt, bitmap, 0, bitmap.length);
}
