// Searches rows for a pattern: see ../../patterns/pattern-search.ts, which lays out what `plan` points at, in words of four bytes:
// 0 row, 1 offset in the bytes, 2 state, 3 context of the character before; then the addresses of 4 the bytes, 5 the offsets of the rows,
// 6 the bits of the rows, 7 for each byte where its class is in a row of the table, in bytes, 8 the first code points of intervals, 9 their classes; 10 the number of intervals;
// 11 the transition table; 12 the class that stands for the end of a text; 13 the contexts of classes, 14 the positions that take them,
// 15 by the contexts before and after a place, where its wiring is behind this address; 16 the bytes of a set of positions; 17, 18 two sets.

/** Entries of the transition table that are no states, and results of a row. */
const unknown: i32 = -1;
const matched: i32 = -2;
const failed: i32 = -3;
const beyondAscii: i32 = -4;

/** Results of a search: all rows are done, or `bytesEnd` is reached. From `missing` on: the class for which a transition is missing. */
const allDone: i32 = 0;
const atBytesEnd: i32 = 1;
const missing: i32 = 2;

/** Where the search is in the current row. */
let place: u32 = 0;

function word(plan: usize, index: usize): usize {
  return load<u32>(plan + (index << 2));
}

function setWord(plan: usize, index: usize, value: usize): void {
  store<u32>(plan + (index << 2), <u32>value);
}

function widthOf(lead: u32): u32 {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** The class of the character at `at`. */
function classAt(plan: usize, at: usize): u32 {
  const lead = <u32>load<u8>(at);
  if (lead < 0x80) return (<u32>load<u16>(word(plan, 7) + (lead << 1))) >>> 2;
  const width = widthOf(lead);
  let rune = lead & (0xff >>> (width + 1));
  for (let i: u32 = 1; i < width; i++) rune = (rune << 6) | (load<u8>(at + i) & 0x3f);
  const intervals = word(plan, 8);
  let low: usize = 0;
  let high = word(plan, 10);
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (load<u32>(intervals + (middle << 2)) <= rune) low = middle;
    else high = middle;
  }
  return load<u16>(word(plan, 9) + (low << 1));
}

/** The first row of [row, to) whose bit is set; `to` if none is. */
function nextRow(bits: usize, row: u32, to: u32): u32 {
  while (row < to) {
    const rest = (<u32>load<u8>(bits + (row >>> 3))) >>> (row & 7);
    if (rest != 0) return min<u32>(row + ctz(rest), to);
    row = (row | 7) + 1;
  }
  return to;
}

/** Runs over a row that ends at `end`, by the transition table. A state is the offset of its row in the table, in bytes. */
function runStates(plan: usize, end: u32, stop: u32): i32 {
  const ascii = word(plan, 7);
  const table = word(plan, 11);
  const bytes = word(plan, 4);
  let state = word(plan, 2);
  let at = bytes + place;
  const stopAt = bytes + stop;
  let result = atBytesEnd;
  for (;;) {
    let entry: i32 = 0;
    for (; at < stopAt; at++) {
      entry = load<i32>(table + state + load<u16>(ascii + ((<usize>load<u8>(at)) << 1)));
      if (entry < 0) break;
      state = entry;
    }
    let runeClass: u32 = 0;
    let width: u32 = 0;
    if (at < stopAt) {
      runeClass = classAt(plan, at);
      width = widthOf(load<u8>(at));
    } else if (at == bytes + end) runeClass = <u32>word(plan, 12);
    else break;
    if (entry >= 0 || entry == beyondAscii) entry = load<i32>(table + state + (runeClass << 2));
    if (entry < 0) {
      result = entry == unknown ? missing + runeClass : entry;
      break;
    }
    state = entry;
    at += width;
  }
  place = <u32>(at - bytes);
  setWord(plan, 2, state);
  return result;
}

/** Runs over a row like `runStates`, but follows all positions over each character. */
function runPositions(plan: usize, end: u32, stop: u32): i32 {
  const bytes = word(plan, 4);
  const contexts = word(plan, 13);
  const accepts = word(plan, 14);
  const wirings = word(plan, 15);
  const setBytes = <u32>word(plan, 16);
  while (true) {
    const isEnd = place == end;
    if (!isEnd && place >= stop) return atBytesEnd;
    const runeClass = isEnd ? 0 : classAt(plan, bytes + place);
    const context: usize = isEnd ? 0 : load<u8>(contexts + runeClass);
    const wiring = wirings + word(wirings, 4 * word(plan, 3) + context);
    const active = word(plan, 17);
    const next = word(plan, 18);
    if (followPositions(active, wiring, accepts + runeClass * setBytes, next, setBytes) != 0) return matched;
    if (isEnd) return failed;
    setWord(plan, 17, next);
    setWord(plan, 18, active);
    setWord(plan, 3, context);
    place += widthOf(load<u8>(bytes + place));
  }
}

/**
 * Clears the bits of the rows before `to` that are set but don't match, from the place in the plan on, whose bit is set. Does not read from
 * `bytesEnd` on, where a character ends; the place in the plan is then where to go on.
 */
export function searchRows(plan: usize, to: u32, bytesEnd: u32, keepsStates: i32): i32 {
  const offsets = word(plan, 5);
  const bits = word(plan, 6);
  let row = <u32>word(plan, 0);
  place = <u32>word(plan, 1);
  while (true) {
    const end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const stop = min<u32>(end, bytesEnd);
    const result = keepsStates != 0 ? runStates(plan, end, stop) : runPositions(plan, end, stop);
    if (result >= 0) {
      setWord(plan, 0, row);
      setWord(plan, 1, place);
      return result;
    }
    if (result == failed) {
      const byte = bits + (row >>> 3);
      store<u8>(byte, load<u8>(byte) & ~(<u8>((<u32>1) << (row & 7))));
    }
    row = nextRow(bits, row + 1, to);
    if (row == to) return allDone;
    place = load<u32>(offsets + ((<usize>row) << 2));
    setWord(plan, 2, 0);
    setWord(plan, 3, 0);
    if (keepsStates == 0) memory.fill(word(plan, 17), 0, word(plan, 16));
  }
}

/**
 * Follows a set of positions over a character, which the positions at `accepts` take. Returns whether a match ended before it. A wiring
 * has a word that is not zero where the pattern matches nothing at all, and the bytes of its branches in another; from byte 16 on, four
 * sets: `first`, `last`, `chained`, `looped`; and the branches. A branch has four words: the offset and length in bytes of its members and
 * of its targets; then these. Lengths and offsets are multiples of 16.
 */
export function followPositions(
  active: usize,
  wiring: usize,
  accepts: usize,
  next: usize,
  setBytes: u32,
): i32 {
  let ended = v128.load32_splat(wiring);
  let carry = i64x2.splat(0);
  const first = wiring + 16;
  const last = first + setBytes;
  const chained = last + setBytes;
  const looped = chained + setBytes;
  for (let i: usize = 0; i < setBytes; i += 16) {
    const set = v128.load(active + i);
    ended = v128.or(ended, v128.and(set, v128.load(last + i)));
    const chain = v128.and(set, v128.load(chained + i));
    const over = i64x2.shr_u(chain, 63);
    const moved = v128.or(i64x2.shl(chain, 1), v128.shuffle<u64>(carry, over, 1, 2));
    const stays = v128.and(set, v128.load(looped + i));
    v128.store(next + i, v128.or(v128.or(v128.load(first + i), stays), moved));
    carry = over;
  }
  let branch = looped + setBytes;
  for (const end = branch + load<u32>(wiring, 4); branch < end;) {
    const members = active + load<u32>(branch);
    const membersBytes: usize = load<u32>(branch, 4);
    const targets = next + load<u32>(branch, 8);
    const targetsBytes: usize = load<u32>(branch, 12);
    branch += 16;
    let any = i64x2.splat(0);
    for (let i: usize = 0; i < membersBytes; i += 16)
      any = v128.or(any, v128.and(v128.load(members + i), v128.load(branch + i)));
    branch += membersBytes;
    if (v128.any_true(any))
      for (let i: usize = 0; i < targetsBytes; i += 16)
        v128.store(targets + i, v128.or(v128.load(targets + i), v128.load(branch + i)));
    branch += targetsBytes;
  }
  for (let i: usize = 0; i < setBytes; i += 16)
    v128.store(next + i, v128.and(v128.load(next + i), v128.load(accepts + i)));
  return v128.any_true(ended) ? 1 : 0;
}
