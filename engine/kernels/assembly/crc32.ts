// Most of the way to a crc32: see ../simd/crc32.ts. The checksum is the remainder of a text, as a polynomial over GF(2), divided by one
// of degree 32. A multiple of that divisor leaves the same remainder in the end, and one is known that has few terms, all of them whole
// blocks of 16 bytes apart: y^300 + y^155 + y^117 + y^89 + 1 with y = x^128. (Squaring is linear there, so that x^128 has the minimal
// polynomial that x has, and what is a multiple of it in x is one in x^128.) Dividing by it takes four exclusive ors for each block.

/** Blocks that the remainder takes, and so the farthest term. */
const remainderBlocks: u32 = 300;
const remainderBytes: usize = 4800;
/** Blocks of the quotient that are made before the room is used anew. */
const stepBlocks: u32 = 600;

/** The block of the quotient that is `remainderBytes` behind `at`, but for that of the text. */
function termsAt(at: usize): v128 {
  return v128.xor(
    v128.xor(v128.load(at), v128.load(at, 1424)),
    v128.xor(v128.load(at, 1872), v128.load(at, 2480)),
  );
}

/**
 * Reduces a text of `blocks` blocks of 16 bytes, more than 300 of them, with `state` added to its first four bytes, to 300 blocks that
 * leave the same remainder: the last third of `room`, which takes 14400 bytes.
 */
export function reduceCrc32(text: usize, blocks: u32, state: u32, room: usize): void {
  memory.fill(room, 0, remainderBytes);
  let quotientBlocks = blocks - remainderBlocks;
  let at = room;
  // All terms but the text's are none for the first one.
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
  // The quotient ends here: what is left of the text, and of the terms of it, is the remainder.
  memory.fill(room + remainderBytes, 0, remainderBytes);
  const remainderEnd = room + remainderBytes;
  for (; at < remainderEnd; at += 16, text += 16)
    v128.store(at, v128.xor(v128.load(text), termsAt(at)), remainderBytes << 1);
}
