import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';
import * as plain from '../xxh64.js';

/** Below this a call costs more than the plain twin. */
const kernelBytesMin = 1024;
/** What does not lie in the kernels' memory is copied there in pieces that stay in the processor's cache. */
const copiedBytesMax = 64 * 1024;

/** As the twin. */
export function addStripes(lanes: Uint32Array, bytes: Uint8Array): void {
  const { stripeBytes } = plain;
  const isHeld = scratchBytes(bytes, 1) === 0;
  const pieceBytes = isHeld ? bytes.length : copiedBytesMax;
  for (let from = 0; from + stripeBytes <= bytes.length; from += pieceBytes) {
    const to = Math.min(bytes.length, from + pieceBytes);
    const piece = bytes.subarray(from, to);
    const scratch =
      to - from < kernelBytesMin ? null : openScratch(lanes.byteLength + (isHeld ? 0 : to - from));
    if (scratch === null) {
      plain.addStripes(lanes, piece);
      continue;
    }
    const lanesAt = scratch.copy(lanes, 0, lanes.length);
    kernelsOver(scratch).xxh64Stripes(
      lanesAt,
      scratch.place(piece, 0, piece.length),
      Math.floor(piece.length / stripeBytes),
    );
    scratch.take(lanesAt, lanes, 0, lanes.length);
  }
}
