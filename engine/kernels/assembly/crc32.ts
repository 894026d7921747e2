// Does most of the work of a CRC-32: see ../crc32.ts. The checksum is the remainder of the text, as a polynomial over GF(2), divided by a
// polynomial of degree 32. A division by a multiple of that polynomial does not change the final remainder. A multiple with few terms is
// known, all of them at whole blocks of 16 bytes: y^300 + y^155 + y^117 + y^89 + 1 with y = x^128. (Squaring is linear over GF(2), so x^128
// has the same minimal polynomial as x, and a polynomial that is a multiple in x is also one in x^128.) Dividing by it takes four XORs per
// block.

/** Blocks of the remainder, which is the degree of the divisor in y. */
const remainderBlocks: u32 = 300;
const remainderBytes: usize = 4800;
/** Blocks of the quotient that are computed before the room is reused. */
const stepBlocks: u32 = 600;

/** The sum of the four shifted quotient blocks that, XORed with the text, gives the quotient block `remainderBytes` after `at`. */
function termsAt(at: usize): v128 {
  return v128.xor(
    v128.xor(v128.load(at), v128.load(at, 1424)),
    v128.xor(v128.load(at, 1872), v128.load(at, 2480)),
  );
}

/**
 * Reduces a text of `blocks` blocks of 16 bytes (more than 300), with `state` XORed to its first four bytes, to 300 blocks with the same
 * CRC-32 remainder. They are written to the last third of `room`, which has 14400 bytes.
 */
export function reduceCrc32(text: usize, blocks: u32, state: u32, room: usize): void {
  memory.fill(room, 0, remainderBytes);
  let quotientBlocks = blocks - remainderBlocks;
  let at = room;
  // There are no quotient blocks before the first one, so it is the text alone.
  v128.store(at, v128.xor(v128.load(text), i32x4.replace_lane(i32x4.splat(0), 0, state)), remainderBytes);
  at += 16;
  text += 16;
  quotientBlocks--;
  let step = min<u32>(quotientBlocks, stepBlocks - 1);
  for (;;) {
    quotientBlocks -= step;
    const stepEnd = at + ((<usize>step) << 4);
    for (; at < stepEnd; at += 16, text += 16)
      v128.store(at, v128.xor(v128.load(text), termsAt(at)), remainderBytes);
    memory.copy(room, at, remainderBytes);
    at = room;
    if (quotientBlocks == 0) break;
    step = min<u32>(quotientBlocks, stepBlocks);
  }
  // The quotient ends here. The rest of the text, XORed with the remaining shifted quotient blocks, is the remainder.
  memory.fill(room + remainderBytes, 0, remainderBytes);
  const remainderEnd = room + remainderBytes;
  for (; at < remainderEnd; at += 16, text += 16)
    v128.store(at, v128.xor(v128.load(text), termsAt(at)), remainderBytes << 1);
}
