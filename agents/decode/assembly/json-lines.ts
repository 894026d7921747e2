// Splits lines that are one JSON object each into spans; see line-spans.ts for the layout and json-lexer.ts for the values.
import { depthMax, hasEscape, nestedEnd, numberEnd, skipSpace, stringEnd, wordEnd } from './json-lexer';
import {
  hasHighByte,
  kindAbsent,
  kindEscaped,
  kindNumber,
  kindOther,
  kindShift,
  kindText,
  lineEntryBytes,
  lineFeedFrom,
  lineOdd,
  lineTaken,
  sameBytes,
  spanBytes,
  takenLineBytesMax,
} from './line-spans';

const quote: u32 = 0x22;
const comma: u32 = 0x2c;
const colon: u32 = 0x3a;
const openBrace: u32 = 0x7b;
const openBracket: u32 = 0x5b;
const closeBrace: u32 = 0x7d;

/** A slot of the key table without a key. */
const noKey: u32 = 0xffffffff;

/** The parent of keys in the line's own object. Other parents are identified by the number of their value's span. */
const ofLine: u32 = 0xffffffff;

/**
 * A wanted key is four words: address, length, parent, use. The use is the number of its value's span, with one bit for a
 * key that may occur at most once per line, and one for a key whose object has wanted keys too.
 */
const keyBytes: usize = 16;
const isOnce: u32 = 0x80000000;
const isParent: u32 = 0x40000000;
const spanNumber: u32 = 0x3fffffff;

/** The use of a key that is not wanted; uses with one of the bits are greater. */
const unwanted: u32 = 0x3fffffff;

/**
 * Number of members of a line whose keys are remembered. A slot remembers the key's address, its length up to the value, its
 * use, and its parent.
 */
const slotCount: usize = 64;
const slotBytes: usize = 16;

/** Bytes that `splitJsonLines` needs for the keys of the previous line. */
export function jsonSlotsBytes(): usize {
  return slotCount * slotBytes;
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), seeded with the parent and folded so that the low bits depend on all of it. */
function hashOf(at: usize, length: u32, parent: u32): u32 {
  let hash: u32 = 0x811c9dc5 ^ parent;
  for (let i: u32 = 0; i < length; i++) hash = (hash ^ (<u32>load<u8>(at + i))) * 0x01000193;
  return hash ^ (hash >>> 15);
}

/** Builds the hash table of keys: `mask + 1` words, a power of two greater than twice `count`. Keys of one parent must be distinct. */
export function buildKeyTable(keys: usize, count: u32, table: usize, mask: u32): void {
  memory.fill(table, 0xff, (<usize>mask + 1) << 2);
  for (let i: u32 = 0; i < count; i++) {
    const key = keys + <usize>i * keyBytes;
    let slot = hashOf(<usize>load<u32>(key), load<u32>(key, 4), load<u32>(key, 8)) & mask;
    while (load<u32>(table + ((<usize>slot) << 2)) != noKey) slot = (slot + 1) & mask;
    store<u32>(table + ((<usize>slot) << 2), i);
  }
}

/** The use of a key in the object of a parent. */
function findKey(at: usize, length: u32, parent: u32, keys: usize, table: usize, mask: u32): u32 {
  let slot = hashOf(at, length, parent) & mask;
  while (true) {
    const number = load<u32>(table + ((<usize>slot) << 2));
    if (number == noKey) return unwanted;
    const key = keys + <usize>number * keyBytes;
    const mayBeKey = load<u32>(key, 4) == length && load<u32>(key, 8) == parent;
    if (mayBeKey && sameBytes(at, <usize>load<u32>(key), length)) return load<u32>(key, 12);
    slot = (slot + 1) & mask;
  }
}

/** The use of the key that `readKey` found last. */
let keyUse: u32 = 0;

/** Reads a key that the slot did not predict, and stores it in the slot. Returns the address of the value; 0 for an odd key. */
function readKey(at: usize, slot: usize, parent: u32, keys: usize, table: usize, mask: u32): usize {
  if (load<u8>(at) != quote) return 0;
  const keyEnd = stringEnd(at + 1);
  // A key with escapes is longer than the name that it stands for, so it can't be compared.
  if (keyEnd == 0 || hasEscape) return 0;
  let value = skipSpace(keyEnd + 1);
  if (load<u8>(value) != colon) return 0;
  value = skipSpace(value + 1);
  keyUse = findKey(at + 1, <u32>(keyEnd - at - 1), parent, keys, table, mask);
  store<u32>(slot, <u32>at);
  store<u32>(slot, <u32>(value - at), 4);
  store<u32>(slot, keyUse, 8);
  store<u32>(slot, parent, 12);
  return value;
}

/** Reads the value at `at` into a span (0 for none). Returns the address after it; 0 for an odd value. */
function readValue(text: usize, at: usize, span: usize): usize {
  const first = <u32>load<u8>(at);
  let kind = kindText;
  let start = at;
  let end: usize;
  let behind: usize;
  if (first == quote) {
    start++;
    end = stringEnd(start);
    if (hasEscape) kind = kindEscaped;
    behind = end + 1;
  } else if (first == openBrace || first == openBracket) {
    kind = kindOther;
    behind = end = nestedEnd(at);
  } else if (first - 0x30 <= 9 || first == 0x2d) {
    kind = kindNumber;
    behind = end = numberEnd(at);
  } else {
    kind = first == 0x6e ? kindAbsent : kindOther;
    behind = end = wordEnd(at);
  }
  if (end == 0) return 0;
  if (span != 0) {
    store<u32>(span, <u32>(start - text));
    store<u32>(span, (<u32>(end - start)) | (kind << kindShift), 4);
  }
  return behind;
}

/** Reads the object at `at`, whose spans are at `row`. Returns the address after it; 0 where the line is odd. */
function readObject(
  text: usize,
  at: usize,
  row: usize,
  slots: usize,
  keys: usize,
  table: usize,
  mask: u32,
): usize {
  at = skipSpace(at);
  if (load<u8>(at) != openBrace) return 0;
  at = skipSpace(at + 1);
  if (load<u8>(at) == closeBrace) return at + 1;
  const lastSlot = slots + (slotCount - 1) * slotBytes;
  let slot = slots;
  let parent = ofLine;
  let depth: u32 = 0;
  while (true) {
    const foretold = load<u32>(slot, 4);
    let use: u32;
    // Lines are mostly alike: the same keys in the same order, with the same spaces. So compare with the previous line first.
    if (foretold != 0 && load<u32>(slot, 12) == parent && sameBytes(at, <usize>load<u32>(slot), foretold)) {
      at = skipSpace(at + foretold);
      use = load<u32>(slot, 8);
    } else {
      at = readKey(at, slot, parent, keys, table, mask);
      if (at == 0) return 0;
      use = keyUse;
    }
    if (slot < lastSlot) slot += slotBytes;
    const span = row + <usize>(use & spanNumber) * spanBytes;
    let isOpened = false;
    if (use > unwanted) {
      // A span that is set has this key's earlier value, or that of a key whose name is the whole path, which takes precedence.
      if ((use & isOnce) != 0 && load<u32>(span) != 0) return 0;
      isOpened = (use & isParent) != 0 && load<u8>(at) == openBrace;
    }
    if (isOpened) {
      if (depth++ == depthMax) return 0;
      // While the object is open, its span holds the enclosing parent instead of a length.
      store<u32>(span, <u32>(at - text));
      store<u32>(span, parent, 4);
      parent = use & spanNumber;
      at = skipSpace(at + 1);
      if (load<u8>(at) != closeBrace) continue;
    } else {
      at = readValue(text, at, use == unwanted ? 0 : span);
      if (at == 0) return 0;
      at = skipSpace(at);
    }
    while (load<u8>(at) == closeBrace) {
      at++;
      if (parent == ofLine) return at;
      const closed = row + <usize>parent * spanBytes;
      parent = load<u32>(closed, 4);
      store<u32>(closed, (<u32>(at - text) - load<u32>(closed)) | (kindOther << kindShift), 4);
      depth--;
      at = skipSpace(at);
    }
    if (load<u8>(at) != comma) return 0;
    at = skipSpace(at + 1);
  }
}

/**
 * Splits at most `linesMax` lines of [text + from, text + to), which is followed by a line feed. `isText` says that all of
 * it is UTF-8; otherwise only ASCII lines are taken. Of a key that occurs twice, the last value counts. Returns the number
 * of lines.
 */
export function splitJsonLines(
  text: usize,
  from: u32,
  to: u32,
  isText: u32,
  keys: usize,
  table: usize,
  mask: u32,
  slots: usize,
  fields: u32,
  lines: usize,
  states: usize,
  spans: usize,
  linesMax: u32,
): u32 {
  // Addresses in earlier texts are no longer valid.
  memory.fill(slots, 0, slotCount * slotBytes);
  const end = text + to;
  const rowBytes = <usize>fields * spanBytes;
  let count: u32 = 0;
  let at = text + from;
  let row = spans;
  while (at < end && count < linesMax) {
    memory.fill(row, 0, rowBytes);
    let behind = readObject(text, at, row, slots, keys, table, mask);
    if (behind != 0) behind = skipSpace(behind);
    let state = lineOdd;
    let feed: usize;
    if (behind != 0 && load<u8>(behind) == 0x0a) {
      feed = behind;
      if (feed - at <= takenLineBytesMax && (isText != 0 || !hasHighByte(at, feed))) state = lineTaken;
    } else {
      feed = lineFeedFrom(at);
    }
    const entry = lines + <usize>count * lineEntryBytes;
    store<u32>(entry, <u32>(at - text));
    store<u32>(entry, <u32>(feed - text), 4);
    store<u8>(states + count, state);
    count++;
    row += rowBytes;
    at = feed + 1;
  }
  return count;
}
