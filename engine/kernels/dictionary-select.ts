import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** The kernel for 8-bit codes reads one byte for each possible code. */
const wantedBytes8 = 256;

/**
 * Selects the rows [from, to) whose dictionary code is in a set of entries, and writes a bitmap.
 *
 * `wanted` has one byte per entry: 1 to select its rows, else 0. `from` must be a multiple of 8. The bytes of `out` for the rows [from, to)
 * are overwritten; bits after `to` become 0.
 */
export function selectCodes(
  codes: Uint8Array | Uint16Array,
  wanted: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const first = from >> 3;
  const outBytes = ((to + 7) >> 3) - first;
  const scratch = openScratch(
    scratchBytes(codes, to - from) + scratchBytes(out, outBytes) + Math.max(wantedBytes8, wanted.length),
  );
  const outAt = scratch.target(out, first, outBytes);
  const codesAt = scratch.place(codes, from, to) - from * codes.BYTES_PER_ELEMENT;
  if (codes instanceof Uint8Array) {
    const wantedAt = scratch.reserveZeros(wantedBytes8);
    scratch.view(wantedAt, wantedBytes8).set(wanted.subarray(0, wantedBytes8));
    kernelsOver(scratch).selectCodes8(codesAt, wantedAt, from, to, outAt - first);
  } else {
    const wantedAt = scratch.place(wanted, 0, wanted.length);
    kernelsOver(scratch).selectCodes16(codesAt, wantedAt, from, to, outAt - first);
  }
  scratch.copyOut(outAt, out, first, outBytes);
}
