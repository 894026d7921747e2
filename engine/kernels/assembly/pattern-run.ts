/** The places of a run that the bytes of a block may be at: see ../../patterns/required-run.ts. */
function placesOf(block: v128, low: v128, high: v128): v128 {
  const lowHalves = v128.and(block, i8x16.splat(15));
  return v128.and(i8x16.swizzle(low, lowHalves), i8x16.swizzle(high, i8x16.shr_u(block, 4)));
}

/** Of the places of a block and of the one behind it: the bytes at which all eight places are as they should be. */
function hitsIn(current: v128, next: v128): i32 {
  let found = v128.and(current, i8x16.splat(1));
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
      i8x16.splat(2),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17),
      i8x16.splat(4),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18),
      i8x16.splat(8),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19),
      i8x16.splat(16),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20),
      i8x16.splat(32),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21),
      i8x16.splat(64),
    ),
  );
  found = v128.or(
    found,
    v128.and(
      i8x16.shuffle(current, next, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22),
      i8x16.splat(-128),
    ),
  );
  return i8x16.bitmask(i8x16.eq(found, i8x16.splat(-1)));
}

/**
 * Sets the bits of the rows [from, to) to whether eight consecutive bytes of theirs may be at the eight places of a run. `from` must be a
 * multiple of 8. Of the last bytes this is not looked for.
 */
export function selectRun(bytes: usize, offsets: usize, from: u32, to: u32, run: usize, bits: usize): void {
  memory.fill(bits, 0, ((to + 7) >>> 3) - (from >>> 3));
  bits -= from >>> 3;
  const low = v128.load(run);
  const high = v128.load(run, 16);
  let row = from;
  let at = bytes + load<u32>(offsets + ((<usize>from) << 2));
  const end = bytes + load<u32>(offsets + ((<usize>to) << 2));
  let current = i64x2.splat(0);
  let isKnown = false;
  while (at + 32 <= end) {
    if (!isKnown) current = placesOf(v128.load(at), low, high);
    const next = placesOf(v128.load(at, 16), low, high);
    const hits = hitsIn(current, next);
    isKnown = hits == 0;
    if (isKnown) {
      current = next;
      at += 16;
      continue;
    }
    const hit = <u32>(at + ctz(hits) - bytes);
    while (load<u32>(offsets + ((<usize>row) << 2), 4) <= hit) row++;
    const byte = bits + (row >>> 3);
    store<u8>(byte, load<u8>(byte) | (<u8>((<u32>1) << (row & 7))));
    row++;
    at = bytes + load<u32>(offsets + ((<usize>row) << 2));
  }
  // All rows that have bytes from here on.
  for (; row < to; row++)
    if (bytes + load<u32>(offsets + ((<usize>row) << 2), 4) > at) {
      const byte = bits + (row >>> 3);
      store<u8>(byte, load<u8>(byte) | (<u8>((<u32>1) << (row & 7))));
    }
}
