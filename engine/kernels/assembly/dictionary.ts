// Builds dictionaries of distinct values, in the order of their first rows, and sorts them: see ../dictionary.ts.

const goldenRatio: u64 = 0x9e3779b97f4a7c15;
const rowsWithoutRepeatMax: u32 = 16384;
/** So few pairs are sorted by insertion. */
const insertedMax: u32 = 64;
/** 256 counters (u32) for each byte of a key. */
const counterBytes: usize = 8 * 256 * 4;

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

/**
 * Sorts the entries of a dictionary of strings by their first `sortedBytes` bytes. Entries that are equal so far stay in their order. 0
 * bytes at the end of an entry make no difference.
 *
 * `firstRows` and `codes` are those of `numberBytes`; both are changed to the new order. `pairs` has 32 bytes for each entry, `starts` one.
 */
export function sortBytes(
  bytes: usize,
  offsets: usize,
  count: u32,
  entries: u32,
  sortedBytes: u32,
  codes: usize,
  firstRows: usize,
  pairs: usize,
  starts: usize,
): void {
  for (let i: u32 = 0; i < entries; i++) {
    const offset = offsets + ((<usize>load<u32>(firstRows + ((<usize>i) << 2))) << 2);
    const from = load<u32>(offset);
    const pair = pairAt(pairs, i);
    store<u16>(pair, <u16>i, 8);
    store<u16>(pair, <u16>min(load<u32>(offset, 4) - from, sortedBytes), 10);
    store<u32>(pair, <u32>bytes + from, 12);
  }
  memory.fill(starts, 0, entries);
  let hasEqual = true;
  for (let depth: u32 = 0; depth < sortedBytes && hasEqual; depth += 8) {
    hasEqual = false;
    let to: u32 = 0;
    for (let from: u32 = 0; from < entries; from = to) {
      to = from + 1;
      while (to < entries && load<u8>(starts + to) == 0) to++;
      if (to == from + 1) continue;
      for (let i = from; i < to; i++) {
        const pair = pairAt(pairs, i);
        store<u64>(pair, wordAt(load<u32>(pair, 12), load<u16>(pair, 10), depth));
      }
      sortPairs(pairAt(pairs, from), pairAt(pairs, entries), to - from);
      for (let i = from + 1; i < to; i++) {
        if (load<u64>(pairAt(pairs, i)) == load<u64>(pairAt(pairs, i - 1))) hasEqual = true;
        else store<u8>(starts + i, 1);
      }
    }
  }
  applyOrder(count, entries, codes, firstRows, pairs);
}

/** Like `sortBytes`, for the 64-bit words at `values`, which are sorted as unsigned numbers. */
export function sortWords(
  values: usize,
  count: u32,
  entries: u32,
  codes: usize,
  firstRows: usize,
  pairs: usize,
): void {
  for (let i: u32 = 0; i < entries; i++) {
    const row = load<u32>(firstRows + ((<usize>i) << 2));
    store<u64>(pairAt(pairs, i), load<u64>(values + ((<usize>row) << 3)));
    store<u16>(pairAt(pairs, i), <u16>i, 8);
  }
  sortPairs(pairs, pairAt(pairs, entries), entries);
  applyOrder(count, entries, codes, firstRows, pairs);
}

/** A pair has 16 bytes: what it is sorted by (u64), the code of the entry (u16) and, for a string, its length (u16) and address (u32). */
function pairAt(pairs: usize, index: u32): usize {
  return pairs + ((<usize>index) << 4);
}

/** 8 bytes of a string from `depth` on, as a number that sorts like them. Bytes after the end of the string are 0. */
function wordAt(text: usize, length: u32, depth: u32): u64 {
  if (depth >= length) return 0;
  const word = bswap<u64>(load<u64>(text + depth));
  const left = length - depth;
  return left >= 8 ? word : word & ((<u64>-1) << (64 - (left << 3)));
}

/** A stable sort in linear time: by one byte of the keys after another. `other` has room for `count` pairs, and for the counters after them. */
function sortPairs(pairs: usize, other: usize, count: u32): void {
  if (areSorted(pairs, count)) return;
  if (count <= insertedMax) return insertPairs(pairs, pairAt(pairs, count));
  const counters = pairAt(other, count);
  countBytes(pairs, count, counters);
  let source = pairs;
  let target = other;
  for (let byte: u32 = 0; byte < 8; byte++) {
    const places = counters + ((<usize>byte) << 10);
    // All keys have the same byte here.
    if (load<u32>(places + ((<usize>load<u8>(source + byte)) << 2)) == count) continue;
    spreadPairs(source, count, byte, places, target);
    const spread = target;
    target = source;
    source = spread;
  }
  if (source != pairs) memory.copy(pairs, source, (<usize>count) << 4);
}

/** Counts how often each of the 8 bytes of the keys has each value. */
function countBytes(pairs: usize, count: u32, counters: usize): void {
  memory.fill(counters, 0, counterBytes);
  for (let i: u32 = 0; i < count; i++) {
    const pair = pairAt(pairs, i);
    for (let byte: u32 = 0; byte < 8; byte++) {
      const counter = counters + ((<usize>byte) << 10) + ((<usize>load<u8>(pair + byte)) << 2);
      store<u32>(counter, load<u32>(counter) + 1);
    }
  }
}

/** Sorts pairs by one byte of their keys. `places` has the counters of this byte. */
function spreadPairs(source: usize, count: u32, byte: u32, places: usize, target: usize): void {
  let next: u32 = 0;
  for (let place = places; place < places + 1024; place += 4) {
    const size = load<u32>(place);
    store<u32>(place, next);
    next += size;
  }
  for (let i: u32 = 0; i < count; i++) {
    const pair = pairAt(source, i);
    const place = places + ((<usize>load<u8>(pair + byte)) << 2);
    const index = load<u32>(place);
    store<u32>(place, index + 1);
    v128.store(pairAt(target, index), v128.load(pair));
  }
}

function areSorted(pairs: usize, count: u32): bool {
  for (let i: u32 = 1; i < count; i++) {
    if (load<u64>(pairAt(pairs, i)) < load<u64>(pairAt(pairs, i - 1))) return false;
  }
  return true;
}

function insertPairs(from: usize, end: usize): void {
  for (let next = from + 16; next < end; next += 16) {
    const pair = v128.load(next);
    const key = load<u64>(next);
    let at = next;
    while (at > from && load<u64>(at - 16) > key) {
      v128.store(at, v128.load(at - 16));
      at -= 16;
    }
    v128.store(at, pair);
  }
}

/** Puts `firstRows` in the order of the sorted pairs, and changes the codes accordingly. */
function applyOrder(count: u32, entries: u32, codes: usize, firstRows: usize, pairs: usize): void {
  const ranks = pairAt(pairs, entries);
  for (let i: u32 = 0; i < entries; i++) {
    const code = load<u16>(pairAt(pairs, i), 8);
    store<u16>(ranks + ((<usize>code) << 1), <u16>i);
    store<u32>(pairAt(pairs, i), load<u32>(firstRows + ((<usize>code) << 2)));
  }
  for (let i: u32 = 0; i < entries; i++)
    store<u32>(firstRows + ((<usize>i) << 2), load<u32>(pairAt(pairs, i)));
  for (let row: u32 = 0; row < count; row++) {
    const at = codes + ((<usize>row) << 1);
    store<u16>(at, load<u16>(ranks + ((<usize>load<u16>(at)) << 1)));
  }
}
