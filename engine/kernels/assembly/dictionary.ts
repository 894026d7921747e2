// Builds dictionaries of distinct values, in the order of their first rows: see ../dictionary.ts.

const goldenRatio: u64 = 0x9e3779b97f4a7c15;
const rowsWithoutRepeatMax: u32 = 16384;

function mix(hash: u64, word: u64): u64 {
  const mixed = (hash ^ word) * goldenRatio;
  return mixed ^ (mixed >>> 32);
}

function hashBytes(at: usize, length: u32): u64 {
  let hash: u64 = 0x243f6a8885a308d3 ^ (<u64>length);
  if (length >= 8) {
    for (let k: u32 = 0; k + 8 < length; k += 8) hash = mix(hash, load<u64>(at + k));
    return mix(hash, load<u64>(at + length - 8));
  }
  if (length == 0) return mix(hash, 1);
  return mix(hash, load<u64>(at) & ((<u64>-1) >>> (64 - (length << 3))));
}

function sameBytes(a: usize, b: usize, length: u32): bool {
  if (length >= 16) {
    for (let k: u32 = 0; k + 16 < length; k += 16) {
      if (v128.any_true(v128.xor(v128.load(a + k), v128.load(b + k)))) return false;
    }
    return !v128.any_true(v128.xor(v128.load(a + length - 16), v128.load(b + length - 16)));
  }
  if (length >= 8) {
    return load<u64>(a) == load<u64>(b) && load<u64>(a + length - 8) == load<u64>(b + length - 8);
  }
  if (length == 0) return true;
  return (load<u64>(a) ^ load<u64>(b)) << (64 - (length << 3)) == 0;
}

/**
 * Numbers the distinct strings of `count` rows. Offsets are relative to `bytes`, which padding must follow. Codes are u16; `firstRows` has
 * room for `entriesMax` numbers; `table` has 2^tableBits entries of 8 bytes, at least twice `entriesMax`. Returns the number of distinct
 * values, or -1 when there are more than `entriesMax`, or there clearly will be.
 */
export function numberBytes(
  bytes: usize,
  offsets: usize,
  count: u32,
  entriesMax: u32,
  codes: usize,
  firstRows: usize,
  table: usize,
  tableBits: u32,
): i32 {
  memory.fill(table, 0, (<usize>8) << tableBits);
  const mask = ((<u32>1) << tableBits) - 1;
  const hashMask: u64 = 0xffffffff00000000;
  let distinct: u32 = 0;
  let start = load<u32>(offsets);
  for (let row: u32 = 0; row < count; row++) {
    const end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const length = end - start;
    const at = bytes + start;
    start = end;
    const hash = hashBytes(at, length);
    let slot = (<u32>(hash >>> 8)) & mask;
    let code: u32 = 0;
    while (true) {
      const entry = load<u64>(table + ((<usize>slot) << 3));
      if (entry == 0) {
        if (distinct == entriesMax || (distinct == row && row == rowsWithoutRepeatMax)) return -1;
        store<u32>(firstRows + ((<usize>distinct) << 2), row);
        code = distinct++;
        store<u64>(table + ((<usize>slot) << 3), (hash & hashMask) | (<u64>distinct));
        break;
      }
      if (((entry ^ hash) & hashMask) == 0) {
        code = <u32>entry - 1;
        const first = offsets + ((<usize>load<u32>(firstRows + ((<usize>code) << 2))) << 2);
        const from = load<u32>(first);
        if (load<u32>(first, 4) - from == length && sameBytes(bytes + from, at, length)) break;
      }
      slot = (slot + 1) & mask;
    }
    store<u16>(codes + ((<usize>row) << 1), <u16>code);
  }
  return distinct;
}

/** Like `numberBytes`, for the 64-bit words at `values`. `table` has 2^tableBits entries of 4 bytes. */
export function numberWords(
  values: usize,
  count: u32,
  entriesMax: u32,
  codes: usize,
  firstRows: usize,
  table: usize,
  tableBits: u32,
): i32 {
  memory.fill(table, 0, (<usize>4) << tableBits);
  const mask = ((<u32>1) << tableBits) - 1;
  let distinct: u32 = 0;
  for (let row: u32 = 0; row < count; row++) {
    const value = load<u64>(values + ((<usize>row) << 3));
    let slot = (<u32>((value * goldenRatio) >>> 40)) & mask;
    let code: u32 = 0;
    while (true) {
      const entry = load<u32>(table + ((<usize>slot) << 2));
      if (entry == 0) {
        if (distinct == entriesMax || (distinct == row && row == rowsWithoutRepeatMax)) return -1;
        store<u32>(firstRows + ((<usize>distinct) << 2), row);
        code = distinct++;
        store<u32>(table + ((<usize>slot) << 2), distinct);
        break;
      }
      code = entry - 1;
      if (load<u64>(values + ((<usize>load<u32>(firstRows + ((<usize>code) << 2))) << 3)) == value) break;
      slot = (slot + 1) & mask;
    }
    store<u16>(codes + ((<usize>row) << 1), <u16>code);
  }
  return distinct;
}
