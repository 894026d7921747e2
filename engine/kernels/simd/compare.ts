import * as plain from '../compare.js';
import { openScratch, scratchBytes } from '../../memory/scratch.js';
import { kernelsOver } from '../kernels.js';

/** Below this many rows a call and its copies cost more than the plain twin. */
const kernelRowsMin = 256;

/** Bounds whose neighbours are doubles too: comparing rounded values with them is exact. */
const safeMax = 2n ** 53n - 1n;
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/**
 * Selects the rows of [from, to) whose integer is in [low, high], or with `flip` = 0xff those whose is not. `from` is a
 * multiple of 8; bits of these rows are overwritten, those up to the end of the last byte with 0. As the twins, of which
 * one is for bounds that doubles hold.
 */
export function selectInt64(
  values: BigInt64Array,
  from: number,
  to: number,
  low: bigint,
  high: bigint,
  flip: number,
  out: Uint8Array,
): void {
  const outBytes = ((to + 7) >> 3) - (from >> 3);
  const scratch =
    to - from < kernelRowsMin
      ? null
      : openScratch(scratchBytes(values, to - from) + scratchBytes(out, outBytes));
  if (scratch === null) {
    selectPlain(values, from, to, low, high, flip, out);
    return;
  }
  const outAt = scratch.target(out, from >> 3, outBytes);
  const valuesAt = scratch.place(values, from, to) - from * 8;
  kernelsOver(scratch).selectInt64(valuesAt, from, to, low, high, flip, outAt - (from >> 3));
  scratch.take(outAt, out, from >> 3, outBytes);
}

function selectPlain(
  values: BigInt64Array,
  from: number,
  to: number,
  low: bigint,
  high: bigint,
  flip: number,
  out: Uint8Array,
): void {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const lowDouble = low === int64Min ? -Infinity : Number(low);
  const highDouble = high === int64Max ? Infinity : Number(high);
  if (isExact(low, lowDouble) && isExact(high, highDouble)) {
    plain.selectInt64(halves, from, to, lowDouble, highDouble, flip, out);
    return;
  }
  plain.selectInt64Wide(
    halves,
    from,
    to,
    Number(low >> 32n),
    Number(low & 0xffff_ffffn),
    Number(high >> 32n),
    Number(high & 0xffff_ffffn),
    flip,
    out,
  );
}

function isExact(bound: bigint, double: number): boolean {
  return !Number.isFinite(double) || (bound >= -safeMax && bound <= safeMax);
}

/** As the twin. */
export function selectFloat64(
  values: Float64Array,
  from: number,
  to: number,
  low: number,
  high: number,
  flip: number,
  out: Uint8Array,
): void {
  const outBytes = ((to + 7) >> 3) - (from >> 3);
  const scratch =
    to - from < kernelRowsMin
      ? null
      : openScratch(scratchBytes(values, to - from) + scratchBytes(out, outBytes));
  if (scratch === null) {
    plain.selectFloat64(values, from, to, low, high, flip, out);
    return;
  }
  const outAt = scratch.target(out, from >> 3, outBytes);
  const valuesAt = scratch.place(values, from, to) - from * 8;
  kernelsOver(scratch).selectFloat64(valuesAt, from, to, low, high, flip, outAt - (from >> 3));
  scratch.take(outAt, out, from >> 3, outBytes);
}
