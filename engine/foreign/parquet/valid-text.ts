import { isAscii, isUtf8 } from 'node:buffer';
import type { BytesColumn } from '../../columns/column.js';
import { FormatError } from '../../parquet/format.js';
import { foreignSpanBytesMax } from '../../terms/limits.js';
import { repairFactorMax, repairUtf8Into } from '../../terms/utf8.js';

/**
 * Makes strings valid UTF-8: each invalid sequence becomes U+FFFD, and `replaced` counts them. Throws `FormatError` when
 * they grow too long.
 */
export function validText(column: BytesColumn): { column: BytesColumn; replaced: number } {
  const { bytes, offsets, length } = column;
  const used = bytes.subarray(offsets[0], offsets[length]);
  if (isAscii(used) || (isUtf8(used) && beginsWithCharacters(column))) return { column, replaced: 0 };
  return repaired(column);
}

/** Whether no string begins inside a character, in bytes that are valid UTF-8 as a whole. */
function beginsWithCharacters({ bytes, offsets, length }: BytesColumn): boolean {
  for (let row = 0; row < length; row++)
    if ((bytes[offsets[row]!]! & 0xc0) === 0x80 && offsets[row]! < bytes.length) return false;
  return true;
}

function repaired(column: BytesColumn): { column: BytesColumn; replaced: number } {
  const { bytes, offsets, length } = column;
  const bytesMax = repairFactorMax * (offsets[length]! - offsets[0]!);
  // The upper bound may be allocated: the system provides only pages of memory that are written, usually few of them.
  const target = new Uint8Array(Math.min(bytesMax, foreignSpanBytesMax));
  const targetOffsets = new Uint32Array(length + 1);
  let end = 0;
  let replaced = 0;
  const count = (): void => {
    replaced++;
  };
  for (let row = 0; row < length; row++) {
    end = repairUtf8Into(bytes, offsets[row]!, offsets[row + 1]!, target, end, count);
    if (end > target.length)
      throw new FormatError(
        `strings that are not UTF-8 would become more than ${foreignSpanBytesMax} bytes`,
        0,
      );
    targetOffsets[row + 1] = end;
  }
  return { column: { ...column, offsets: targetOffsets, bytes: target.subarray(0, end) }, replaced };
}
