// Lines that are one JSON object each, taken apart into spans: see line-spans.ts for the layout and json-lexer.ts for the values.
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

/** A slot of the table that holds no key. */
const noKey: u32 = 0xffffffff;

/** The parent of the keys in the line's own object. Other parents are known by the spans of their values. */
const ofLine: u32 = 0xffffffff;

/**
 * A wanted key: its address, its length, the parent that holds it, its use. The use is the number of its value's span, with a bit for a key that may come
 * once in a line at most, and one for a key in whose object others are wanted.
 */
const keyBytes: usize = 16;
const isOnce: u32 = 0x80000000;
const isParent: u32 = 0x40000000;
const spanNumber: u32 = 0x3fffffff;

/** The use of a key that nobody wants; uses with one of the bits are greater. */
const unwanted: u32 = 0x3fffffff;

/** Members of a line whose keys are remembered, and what is: where the key stood, up to its value, its use, and its parent. */
const slotCount: usize = 64;
const slotBytes: usize = 16;

/** Bytes that `splitJsonLines` needs for the keys of the line before. */
export function jsonSlotsBytes(): usize {
  return slotCount * slotBytes;
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), begun with the parent, folded so that the low bits see all of it. */
function hashOf(at: usize, length: u32, parent: u32): u32 {
  let hash: u32 = 0x811c9dc5 ^ parent;
  for (let i: u32 = 0; i < length; i++) hash = (hash ^ (<u32>load<u8>(at + i))) * 0x01000193;
  return hash ^ (hash >>> 15);
}

/**
 * Builds the table by which keys are found: `mask + 1` words, a power of two more than twice `count`. No two keys
 * of one parent are alike.
 */
export function buildKeyTable(keys: usize, count: u32, table: usize, mask: u32): void {
  memory.fill(table, 0xff, (<usize>mask + 1) << 2);
  for (let i: u32 = 0; i < count; i++) {
    const key = keys + <usize>i * keyBytes;
    let slot = hashOf(<usize>load<u32>(key), load<u32>(key, 4), load<u32>(key, 8)) & mask;
    while (load<u32>(table + ((<usize>slot) << 2)) != noKey) slot = (slot + 1) & mask;
    store<u32>(table + ((<usize>slot) << 2), i);
  }
}

/** The use of a key that a parent's object holds. */
function findKey(at: usize, length: u32, parent: u32, keys: usize, table: usize, mask: u32): u32 {
  let slot = hashOf(at, length, parent) & mask;
  while (true) {
    const number = load<u32>(table + ((<usize>slot) << 2));
    if (number == noKey) return unwanted;
    const key = keys + <usize>number * keyBytes;
    const isAlike = load<u32>(key, 4) == length && load<u32>(key, 8) == parent;
    if (isAlike && sameBytes(at, <usize>load<u32>(key), length)) return load<u32>(key, 12);
    slot = (slot + 1) & mask;
  }
}

/** The use of the key found last by `readKey`. */
let keyUse: u32 = 0;

/** Reads a key that the slot does not foretell, and has it foretell it. Returns the address of the value, 0 for an odd key. */
function readKey(at: usize, slot: usize, parent: u32, keys: usize, table: usize, mask: u32): usize {
  if (load<u8>(at) != quote) return 0;
  const keyEnd = stringEnd(at + 1);
  // A key with escapes is longer than what it means.
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

/** Reads the value at `at` into a span, 0 for none. Returns the address behind it, 0 for an odd value. */
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

/** Reads the object at `at`, whose spans are at `row`. Returns the address behind it, 0 where the line is odd. */
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
    // Lines are mostly alike: their keys come in the same order, with the same blanks.
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
      // What is there is the same key's, or the value of a key that has the whole path for its name, which goes first.
      if ((use & isOnce) != 0 && load<u32>(span) != 0) return 0;
      isOpened = (use & isParent) != 0 && load<u8>(at) == openBrace;
    }
    if (isOpened) {
      if (depth++ == depthMax) return 0;
      // While the object is open, its span has the parent around it in the place of the length.
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
 * Takes apart lines of [text + from, text + to), behind which a line feed stands, at most `linesMax`. `isText` says that all of it
 * is UTF-8; else only lines of ASCII are taken. Of a key that comes twice the last one counts. Returns the number of lines.
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
  // Addresses of earlier texts mean nothing here.
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
