// Searches rows for a pattern: see ../../patterns/pattern-search.ts, which lays out what `plan` points at, in words of four bytes:
// 0 to 15 four lanes, of each the row, the offset in the bytes, the state (without states: the context of the character before), and where
// it stops; 16 the next row for a lane, 17 the bytes read, 18 the lane that lacks a transition; then the addresses of 19 the bytes,
// 20 the offsets of the rows, 21 the bits of the rows, 22 for each byte where its class is in a row of the table, in bytes, 23 the first
// code points of intervals, 24 their classes; 25 the number of intervals; 26 the transition table; 27 the class that stands for the end of a
// text; 28 the contexts of classes, 29 the positions that take them, 30 by the contexts before and after a place, where its wiring is behind
// this address; 31 the bytes of a set of positions; 32, 33 two sets.

/** Entries of the transition table that are no states, and results of a row. */
const unknown: i32 = -1;
const matched: i32 = -2;
const failed: i32 = -3;
const beyondAscii: i32 = -4;

/** Results of a search: all rows are done, or `bytesEnd` is reached. From `missing` on: the class for which a transition is missing. */
const allDone: i32 = 0;
const atBytesEnd: i32 = 1;
const missing: i32 = 2;

/**
 * Rows that are searched at the same time. A state is known only when the entry before it has been loaded, so that one row alone would
 * leave the processor waiting.
 */
const laneBytes: usize = 16;
const lanesBytes: usize = 4 * laneBytes;

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
  if (lead < 0x80) return (<u32>load<u16>(word(plan, 22) + (lead << 1))) >>> 2;
  const width = widthOf(lead);
  let rune = lead & (0xff >>> (width + 1));
  for (let i: u32 = 1; i < width; i++) rune = (rune << 6) | (load<u8>(at + i) & 0x3f);
  const intervals = word(plan, 23);
  let low: usize = 0;
  let high = word(plan, 25);
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (load<u32>(intervals + (middle << 2)) <= rune) low = middle;
    else high = middle;
  }
  return load<u16>(word(plan, 24) + (low << 1));
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

function clearRow(bits: usize, row: u32): void {
  const byte = bits + (row >>> 3);
  store<u8>(byte, load<u8>(byte) & ~(<u8>((<u32>1) << (row & 7))));
}

/**
 * Moves a lane on to a character for which the table has a state, over rows that are decided; it has no character left before it stops
 * where no row is left, or where `bytesEnd` is reached. Returns the result of the search where a transition is missing, else 0.
 */
function settle(plan: usize, lane: usize, to: u32, bytesEnd: u32): i32 {
  const bytes = word(plan, 19);
  const offsets = word(plan, 20);
  const bits = word(plan, 21);
  const table = word(plan, 26);
  let row = load<u32>(lane);
  while (true) {
    if (row == to) {
      row = nextRow(bits, <u32>word(plan, 16), to);
      store<u32>(lane, row);
      setWord(plan, 16, min(row + 1, to));
      const at: u32 = row == to ? bytesEnd : load<u32>(offsets + ((<usize>row) << 2));
      store<u32>(lane, at, 4);
      store<u32>(lane, 0, 8);
      store<u32>(lane, bytesEnd, 12);
      if (row == to) return 0;
    }
    const at = load<u32>(lane, 4);
    const end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const stop = min(end, bytesEnd);
    store<u32>(lane, stop, 12);
    const state = table + load<u32>(lane, 8);
    let runeClass = <u32>word(plan, 27);
    let width: u32 = 0;
    if (at < stop) {
      const lead = load<u8>(bytes + at);
      if (load<i32>(state + load<u16>(word(plan, 22) + ((<usize>lead) << 1))) >= 0) return 0;
      runeClass = classAt(plan, bytes + at);
      width = widthOf(lead);
    } else if (at != end) return 0;
    const entry = load<i32>(state + ((<usize>runeClass) << 2));
    if (entry == unknown) {
      setWord(plan, 18, lane);
      return missing + runeClass;
    }
    if (entry >= 0) {
      store<u32>(lane, at + width, 4);
      store<u32>(lane, entry, 8);
      setWord(plan, 17, word(plan, 17) + width);
    } else {
      if (entry == failed) clearRow(bits, row);
      row = to;
    }
  }
}

/**
 * Clears the bits of the rows before `to` that are set but don't match, from where the lanes are on, by the transition table. Does not read
 * from `bytesEnd` on, where a character ends.
 */
export function searchStates(plan: usize, to: u32, bytesEnd: u32): i32 {
  const bytes = word(plan, 19);
  const columns = word(plan, 22);
  const table = word(plan, 26);
  while (true) {
    let left: u32 = u32.MAX_VALUE;
    let running: usize = 0;
    let count: usize = 0;
    let isPaused = false;
    for (let lane = plan; lane < plan + lanesBytes; lane += laneBytes) {
      const result = settle(plan, lane, to, bytesEnd);
      if (result != 0) return result;
      const at = load<u32>(lane, 4);
      const stop = load<u32>(lane, 12);
      if (at < stop) {
        left = min(left, stop - at);
        running = lane;
        count++;
      } else if (load<u32>(lane) != to) isPaused = true;
    }
    if (running == 0) return isPaused ? atBytesEnd : allDone;
    // A lane without a character left does the same as another.
    const lane0 = laneOr(plan, running);
    const lane1 = laneOr(plan + laneBytes, running);
    const lane2 = laneOr(plan + 2 * laneBytes, running);
    const lane3 = laneOr(plan + 3 * laneBytes, running);
    const at0 = bytes + load<u32>(lane0, 4);
    const at1 = bytes + load<u32>(lane1, 4);
    const at2 = bytes + load<u32>(lane2, 4);
    const at3 = bytes + load<u32>(lane3, 4);
    let state0 = load<i32>(lane0, 8);
    let state1 = load<i32>(lane1, 8);
    let state2 = load<i32>(lane2, 8);
    let state3 = load<i32>(lane3, 8);
    let read: u32 = 0;
    for (; read < left; read++) {
      const next0 = load<i32>(table + state0 + load<u16>(columns + ((<usize>load<u8>(at0 + read)) << 1)));
      const next1 = load<i32>(table + state1 + load<u16>(columns + ((<usize>load<u8>(at1 + read)) << 1)));
      const next2 = load<i32>(table + state2 + load<u16>(columns + ((<usize>load<u8>(at2 + read)) << 1)));
      const next3 = load<i32>(table + state3 + load<u16>(columns + ((<usize>load<u8>(at3 + read)) << 1)));
      if ((next0 | next1 | next2 | next3) < 0) break;
      state0 = next0;
      state1 = next1;
      state2 = next2;
      state3 = next3;
    }
    move(lane0, at0 - bytes + read, state0);
    move(lane1, at1 - bytes + read, state1);
    move(lane2, at2 - bytes + read, state2);
    move(lane3, at3 - bytes + read, state3);
    setWord(plan, 17, word(plan, 17) + count * read);
  }
}

function laneOr(lane: usize, other: usize): usize {
  return load<u32>(lane, 4) < load<u32>(lane, 12) ? lane : other;
}

function move(lane: usize, at: usize, state: i32): void {
  store<u32>(lane, <u32>at, 4);
  store<i32>(lane, state, 8);
}

/** Runs over the row of the first lane, and follows all positions over each character. */
function runPositions(plan: usize, end: u32, stop: u32): i32 {
  const bytes = word(plan, 19);
  const columns = word(plan, 22);
  const contexts = word(plan, 28);
  const accepts = word(plan, 29);
  const wirings = word(plan, 30);
  const setBytes = <u32>word(plan, 31);
  let at = <u32>word(plan, 1);
  let context = word(plan, 2);
  let active = word(plan, 32);
  let next = word(plan, 33);
  let result = atBytesEnd;
  while (at < stop || at == end) {
    const isEnd = at == end;
    const lead: usize = isEnd ? 0 : load<u8>(bytes + at);
    let runeClass: u32 = 0;
    if (lead < 0x80) runeClass = (<u32>load<u16>(columns + (lead << 1))) >>> 2;
    else runeClass = classAt(plan, bytes + at);
    const after: usize = isEnd ? 0 : load<u8>(contexts + runeClass);
    const wiring = wirings + word(wirings, 4 * context + after);
    const isMatch = followPositions(active, wiring, accepts + runeClass * setBytes, next, setBytes) != 0;
    if (isMatch || isEnd) {
      result = isMatch ? matched : failed;
      break;
    }
    at += widthOf(<u32>lead);
    context = after;
    const set = active;
    active = next;
    next = set;
  }
  setWord(plan, 1, at);
  setWord(plan, 2, context);
  setWord(plan, 32, active);
  setWord(plan, 33, next);
  return result;
}

/** Like `searchStates`, but follows all positions, with one lane. */
export function searchPositions(plan: usize, to: u32, bytesEnd: u32): i32 {
  const offsets = word(plan, 20);
  const bits = word(plan, 21);
  while (true) {
    let row = <u32>word(plan, 0);
    if (row == to) {
      row = nextRow(bits, <u32>word(plan, 16), to);
      if (row == to) return allDone;
      setWord(plan, 0, row);
      setWord(plan, 1, load<u32>(offsets + ((<usize>row) << 2)));
      setWord(plan, 2, 0);
      setWord(plan, 16, row + 1);
      memory.fill(word(plan, 32), 0, word(plan, 31));
    }
    const end = load<u32>(offsets + ((<usize>row) << 2), 4);
    const result = runPositions(plan, end, min(end, bytesEnd));
    if (result == atBytesEnd) return result;
    if (result == failed) clearRow(bits, row);
    setWord(plan, 0, to);
  }
}

/**
 * Follows a set of positions over a character, which the positions at `accepts` take. Returns whether a match ended before it. A wiring
 * has a word that is not zero where the pattern matches nothing at all, the bytes of its branches, and a word that is not zero where it has
 * skipped positions; from byte 16 on, five sets: `first`, `last`, `chained`, `looped`, `skipped`; and the branches. A branch has four words: the offset and length in bytes of its members and
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
  // Positions that don't take the character may still be skipped.
  const unmasked = i32x4.splat(load<u32>(wiring, 8) != 0 ? -1 : 0);
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
    const reached = v128.or(v128.or(v128.load(first + i), stays), moved);
    v128.store(next + i, v128.and(reached, v128.or(v128.load(accepts + i), unmasked)));
    carry = over;
  }
  const skipped = looped + setBytes;
  let branch = skipped + setBytes;
  for (const end = branch + load<u32>(wiring, 4); branch < end;) {
    const members = active + load<u32>(branch);
    const membersBytes: usize = load<u32>(branch, 4);
    const targetsAt: usize = load<u32>(branch, 8);
    const targetsBytes: usize = load<u32>(branch, 12);
    branch += 16;
    let any = i64x2.splat(0);
    for (let i: usize = 0; i < membersBytes; i += 16)
      any = v128.or(any, v128.and(v128.load(members + i), v128.load(branch + i)));
    branch += membersBytes;
    if (v128.any_true(any))
      for (let i: usize = 0; i < targetsBytes; i += 16)
        reach(
          next + targetsAt + i,
          v128.load(branch + i),
          v128.or(v128.load(accepts + targetsAt + i), unmasked),
        );
    branch += targetsBytes;
  }
  if (load<u32>(wiring, 8) != 0) skip(next, skipped, accepts, setBytes);
  return v128.any_true(ended) ? 1 : 0;
}

function reach(at: usize, targets: v128, mask: v128): void {
  v128.store(at, v128.or(v128.load(at), v128.and(targets, mask)));
}

/**
 * Adds to a set what comes after its members that are skipped, and leaves what takes the character. The carry of an addition runs over
 * neighbours that are all skipped.
 */
function skip(set: usize, skipped: usize, accepts: usize, setBytes: usize): void {
  let carry: u64 = 0;
  for (let i: usize = 0; i < setBytes; i += 16) {
    const over = v128.load(skipped + i);
    const members = v128.load(set + i);
    const least = i64x2.add(v128.and(members, over), over);
    // A carry into a half that is full runs on into the next one.
    const low = <u64>i64x2.extract_lane(least, 0) + carry;
    carry = u64(<u64>i64x2.extract_lane(least, 0) < <u64>i64x2.extract_lane(over, 0)) | u64(low < carry);
    const high = <u64>i64x2.extract_lane(least, 1) + carry;
    carry = u64(<u64>i64x2.extract_lane(least, 1) < <u64>i64x2.extract_lane(over, 1)) | u64(high < carry);
    const sum = i64x2.replace_lane(i64x2.splat(low), 1, high);
    const reached = v128.or(members, v128.xor(sum, over));
    v128.store(set + i, v128.and(reached, v128.load(accepts + i)));
  }
}
