/**
 * Compares numeric columns with an inclusive range, and writes a bitmap.
 *
 * `from` must be a multiple of 8. The bytes of `out` for the rows [from, to) are overwritten; bits after `to` become 0. `flip` is 0xff to
 * select the values outside the range, else 0. Nulls are not treated: the caller must clear their bits.
 */
import { openScratch, scratchBytes, type Scratch } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Selects the rows of [from, to) whose integer is in [low, high], or with `flip` = 0xff is not. */
export function selectInt64(
  values: BigInt64Array,
  from: number,
  to: number,
  low: bigint,
  high: bigint,
  flip: number,
  out: Uint8Array,
): void {
  select(values, from, to, out, (scratch, valuesAt, outAt) =>
    kernelsOver(scratch).selectInt64(valuesAt, from, to, low, high, flip, outAt),
  );
}

/** Like `selectInt64`, for doubles, none of them NaN. −0 equals +0. */
export function selectFloat64(
  values: Float64Array,
  from: number,
  to: number,
  low: number,
  high: number,
  flip: number,
  out: Uint8Array,
): void {
  select(values, from, to, out, (scratch, valuesAt, outAt) =>
    kernelsOver(scratch).selectFloat64(valuesAt, from, to, low, high, flip, outAt),
  );
}

/** Calls `run` with the addresses of row 0 of the values and of `out`. Only the rows [from, to) are really there. */
function select(
  values: BigInt64Array | Float64Array,
  from: number,
  to: number,
  out: Uint8Array,
  run: (scratch: Scratch, valuesAt: number, outAt: number) => void,
): void {
  const first = from >> 3;
  const outBytes = ((to + 7) >> 3) - first;
  const scratch = openScratch(scratchBytes(values, to - from) + scratchBytes(out, outBytes));
  const outAt = scratch.target(out, first, outBytes);
  run(scratch, scratch.place(values, from, to) - from * values.BYTES_PER_ELEMENT, outAt - first);
  scratch.copyOut(outAt, out, first, outBytes);
}
