// The block format of Snappy (https://github.com/google/snappy/blob/main/format_description.txt): see ../snappy.ts.
import { copyLoose } from './copy';
import { copyMatch } from './lz4';
import { readVarint, varint } from './varint';

/** Copies may write up to this many bytes past their end. */
const overrunBytes: usize = 64;

/** The number of bytes of a copy's offset, by the kind of its tag. */
function offsetBytes(kind: u32): usize {
  return kind == 3 ? 4 : kind;
}

/**
 * Decompresses source[0, sourceBytes) to target[0, length), which it must fill exactly. Returns `length`, or -1 when the input is
 * malformed. Never writes outside the target, whatever the input. Padding must follow the source.
 */
export function snappyDecompress(source: usize, sourceBytes: u32, target: usize, length: u32): i32 {
  const end = source + sourceBytes;
  const targetEnd = target + length;
  let s = readVarint(source, end);
  if (s == 0 || varint != length) return -1;
  let d = target;
  while (s < end) {
    const tag = <u32>load<u8>(s++);
    const kind = tag & 3;
    const room = targetEnd - d;
    if (kind == 0) {
      let literals = <usize>(tag >>> 2);
      if (literals >= 60) {
        const extra = literals - 59;
        if (extra > end - s) return -1;
        literals = load<u32>(s) & ((<u32>-1) >>> ((4 - <u32>extra) << 3));
        s += extra;
      }
      // The length minus 1 is stored. It is checked before 1 is added, so that the largest one does not overflow.
      if (literals >= end - s || literals >= room) return -1;
      literals++;
      if (room >= literals + 16) copyLoose(d, s, literals);
      else memory.copy(d, s, literals);
      s += literals;
      d += literals;
      continue;
    }
    if (offsetBytes(kind) > end - s) return -1;
    let matched: usize;
    let offset: usize;
    if (kind == 1) {
      matched = 4 + ((tag >>> 2) & 7);
      offset = ((tag >>> 5) << 8) | load<u8>(s);
    } else {
      matched = (tag >>> 2) + 1;
      offset = kind == 2 ? load<u16>(s) : load<u32>(s);
    }
    s += offsetBytes(kind);
    // An offset of 0 becomes a large number here, and fails the check.
    if (offset - 1 >= d - target || matched > room) return -1;
    if (offset >= 16 && room >= matched + overrunBytes) copyLoose(d, d - offset, matched);
    else copyMatch(d, offset, matched, room);
    d += matched;
  }
  return d == targetEnd ? <i32>length : -1;
}
