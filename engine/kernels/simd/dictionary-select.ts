import * as plain from '../dictionary-select.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many rows a call and its copies cost more than the plain twin. */
const kernelRowsMin = 256;
/** The kernel for 8-bit codes reads a byte for each code that there can be. */
const wantedBytes8 = 256;

/** As the twin. */
export function selectCodes(
  codes: Uint8Array | Uint16Array,
  wanted: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): void {
  const outBytes = ((to + 7) >> 3) - (from >> 3);
  const scratch =
    to - from < kernelRowsMin
      ? null
      : openScratch(
          scratchBytes(codes, to - from) +
            scratchBytes(out, outBytes) +
            Math.max(wantedBytes8, wanted.length),
        );
  if (scratch === null) {
    plain.selectCodes(codes, wanted, from, to, out);
    return;
  }
  const outAt = scratch.target(out, from >> 3, outBytes);
  const codesAt = scratch.place(codes, from, to) - from * codes.BYTES_PER_ELEMENT;
  if (codes instanceof Uint8Array) {
    const wantedAt = scratch.clear(wantedBytes8);
    scratch.view(wantedAt, wantedBytes8).set(wanted.subarray(0, wantedBytes8));
    kernelsOver(scratch).selectCodes8(codesAt, wantedAt, from, to, outAt - (from >> 3));
  } else {
    const wantedAt = scratch.place(wanted, 0, wanted.length);
    kernelsOver(scratch).selectCodes16(codesAt, wantedAt, from, to, outAt - (from >> 3));
  }
  scratch.take(outAt, out, from >> 3, outBytes);
}
