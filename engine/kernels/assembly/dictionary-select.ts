// Selects rows by a set of dictionary entries, and writes a bitmap: see ../dictionary-select.ts.

function sixteenOf(wanted: usize): u16 {
  return <u16>i8x16.bitmask(i8x16.ne(v128.load(wanted), i8x16.splat(0)));
}

/** One bit for each of the 128 entries whose bytes are at `wanted`. */
function setOf(wanted: usize): v128 {
  return i16x8(
    sixteenOf(wanted),
    sixteenOf(wanted + 16),
    sixteenOf(wanted + 32),
    sixteenOf(wanted + 48),
    sixteenOf(wanted + 64),
    sixteenOf(wanted + 80),
    sixteenOf(wanted + 96),
    sixteenOf(wanted + 112),
  );
}

/** One bit for each of the sixteen codes at `at`: whether it is in `low` (entries 0 to 127) or in `high` (128 to 255). */
function membersOf(at: usize, low: v128, high: v128): u32 {
  const bitOfCode = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
  const codes = v128.load(at);
  const byteOfCode = i8x16.shr_u(codes, 3);
  const byte = v128.or(
    i8x16.swizzle(low, byteOfCode),
    i8x16.swizzle(high, i8x16.sub(byteOfCode, i8x16.splat(16))),
  );
  const bit = i8x16.swizzle(bitOfCode, v128.and(codes, i8x16.splat(7)));
  return i8x16.bitmask(i8x16.ne(v128.and(byte, bit), i8x16.splat(0)));
}

/** One bit for each of the 32 codes at `at`, see `membersOf`. */
function wordOf(at: usize, low: v128, high: v128): u32 {
  return membersOf(at, low, high) | (membersOf(at + 16, low, high) << 16);
}

/**
 * Selects the rows of [from, to) whose 8-bit code has a nonzero byte at `wanted`, which has 256 bytes. `from` must be a multiple of 8.
 * Overwrites the bits of these rows at `out`; the remaining bits of the last byte become 0.
 */
export function selectCodes8(codes: usize, wanted: usize, from: u32, to: u32, out: usize): void {
  const low = setOf(wanted);
  const high = setOf(wanted + 128);
  out += from >>> 3;
  let row = from;
  // Process four parts of the rows side by side. At the start of each memory page the CPU has to wait; this way it waits for four pages at
  // the same time.
  const stretch = ((to - from) >>> 2) & ~31;
  const stretchBits = stretch >>> 3;
  for (const end = from + stretch; row < end; row += 32) {
    const at = codes + row;
    store<u32>(out, wordOf(at, low, high));
    store<u32>(out + stretchBits, wordOf(at + stretch, low, high));
    store<u32>(out + 2 * stretchBits, wordOf(at + 2 * stretch, low, high));
    store<u32>(out + 3 * stretchBits, wordOf(at + 3 * stretch, low, high));
    out += 4;
  }
  row += 3 * stretch;
  out += 3 * stretchBits;
  for (; row + 32 <= to; row += 32) {
    store<u32>(out, wordOf(codes + row, low, high));
    out += 4;
  }
  for (; row < to; row += 8) {
    const rows = min<u32>(8, to - row);
    let bits: u32 = 0;
    for (let k: u32 = 0; k < rows; k++)
      bits |= (<u32>(load<u8>(wanted + load<u8>(codes + row + k)) != 0)) << k;
    store<u8>(out++, <u8>bits);
  }
}

/** Like `selectCodes8`, for 16-bit codes. The bytes at `wanted` must be 1 or 0; one per entry suffices. */
export function selectCodes16(codes: usize, wanted: usize, from: u32, to: u32, out: usize): void {
  out += from >>> 3;
  let at = codes + ((<usize>from) << 1);
  let row = from;
  for (; row + 8 <= to; row += 8) {
    const first = load<u64>(at);
    const second = load<u64>(at, 8);
    const bits =
      (<u32>load<u8>(wanted + <usize>(first & 0xffff))) |
      ((<u32>load<u8>(wanted + <usize>((first >>> 16) & 0xffff))) << 1) |
      ((<u32>load<u8>(wanted + <usize>((first >>> 32) & 0xffff))) << 2) |
      ((<u32>load<u8>(wanted + <usize>(first >>> 48))) << 3) |
      ((<u32>load<u8>(wanted + <usize>(second & 0xffff))) << 4) |
      ((<u32>load<u8>(wanted + <usize>((second >>> 16) & 0xffff))) << 5) |
      ((<u32>load<u8>(wanted + <usize>((second >>> 32) & 0xffff))) << 6) |
      ((<u32>load<u8>(wanted + <usize>(second >>> 48))) << 7);
    store<u8>(out++, <u8>bits);
    at += 16;
  }
  if (row < to) {
    let bits: u32 = 0;
    for (let k: u32 = 0; row + k < to; k++) bits |= (<u32>load<u8>(wanted + load<u16>(at + (k << 1)))) << k;
    store<u8>(out, <u8>bits);
  }
}
