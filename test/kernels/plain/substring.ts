/**
 * Compares the strings of a column with a needle, and writes the result to a bitmap. Row r is bytes[offsets[r], offsets[r + 1]). The bytes
 * of `out` for the rows [from, to) are overwritten, bits past `to` with 0. Needles are folded (no upper-case ASCII letter) unless stated
 * otherwise.
 */
import { asciiFold } from '../../../engine/kernels/substring.js';

type Select = (
  offsets: Uint32Array,
  bytes: Uint8Array,
  needle: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
) => void;

/** Selects the rows whose bytes satisfy `matches`; the bytes are folded first if `folds` is set. */
function selecting(folds: boolean, matches: (value: Buffer, needle: Uint8Array) => boolean): Select {
  return (offsets, bytes, needle, from, to, out) => {
    out.fill(0, from >> 3, (to + 7) >> 3);
    for (let row = from; row < to; row++) {
      const value = bytes.subarray(offsets[row], offsets[row + 1]);
      const compared = Buffer.from(folds ? value.map((byte) => asciiFold[byte]!) : value);
      if (matches(compared, needle)) out[row >> 3]! |= 1 << (row & 7);
    }
  };
}

/** Rows that equal the needle byte for byte; the needle is not folded. */
export const selectEqual = selecting(false, (value, needle) => value.equals(needle));

/** Rows that begin with the needle. */
export const selectPrefix = selecting(true, (value, needle) =>
  value.subarray(0, needle.length).equals(needle),
);

/** Rows that end with the needle. */
export const selectSuffix = selecting(true, (value, needle) =>
  value.subarray(Math.max(0, value.length - needle.length)).equals(needle),
);

/** Rows that contain the needle. */
export const selectContaining = selecting(true, (value, needle) => value.indexOf(needle) >= 0);
