// Searches an LZ4 block for needles while it is decompressed, piece by piece. The decompressed bytes pass through a window that stays in
// the nearest caches; they are not kept. See ../block-search.ts.
import {
  copyMatch,
  decompressShort,
  matchBytesMin,
  moveTo,
  reachedSource,
  reachedTarget,
  shortSourceBytes,
  shortTargetBytes,
} from './lz4';
import { mayHold, needleBytes } from './substring';

/** The maximum distance of a match: this many of the last decompressed bytes stay in the window. */
const historyBytes: usize = 65536;

/** What comes next in the block: a sequence, the rest of its literals, its offset, or the rest of its match. */
const atSequence: u32 = 0;
const inLiterals: u32 = 1;
const atOffset: u32 = 2;
const inMatch: u32 = 3;

/** Results of a search. 0 means that nothing has been found so far. */
const found: i32 = 1;
const malformed: i32 = -1;

let window: usize = 0;
let windowEnd: usize = 0;
/** Address of the first decompressed byte that has not been searched. */
let newAt: usize = 0;
/** Number of bytes that the rest of the block has to decompress to. */
let restBytes: u32 = 0;
let state: u32 = atSequence;
let matchNibble: u32 = 0;
let pendingBytes: u32 = 0;
let offset: usize = 0;
let needles: usize = 0;
let needleCount: u32 = 0;

/**
 * Begins to search a block at `source` that decompresses to `length` bytes. The window must have room for `historyBytes`, the longest
 * needle and some new bytes, and must be followed by padding.
 */
export function beginSearch(
  source: usize,
  length: u32,
  windowAt: usize,
  windowBytes: u32,
  needlesAt: usize,
  count: u32,
): void {
  moveTo(source, windowAt);
  window = windowAt;
  windowEnd = windowAt + windowBytes;
  newAt = windowAt;
  restBytes = length;
  state = atSequence;
  needles = needlesAt;
  needleCount = count;
}

/** Whether one of the needles may end in [newFrom, to), in a text that begins at `from`. */
function mayEndIn(from: usize, newFrom: usize, to: usize): bool {
  for (let k: u32 = 0; k < needleCount; k++) {
    const needle = needles + <usize>k * needleBytes;
    const length = load<u32>(needle, 4);
    const at = newFrom < from + length ? from : newFrom - length + 1;
    if (mayHold(at, to, load<u32>(needle), length, load<u32>(needle, 8), load<u32>(needle, 12))) return true;
  }
  return false;
}

/** Like `searchPiece`, for a whole text that is not compressed. */
export function searchText(text: usize, length: u32, needlesAt: usize, count: u32): i32 {
  needles = needlesAt;
  needleCount = count;
  return mayEndIn(text, text, text + length) ? found : 0;
}

/** Searches the bytes that are new since the last call. */
function lookAtNew(): bool {
  const from = newAt;
  newAt = reachedTarget();
  return mayEndIn(window, from, newAt);
}

/** Makes room in the window: keeps only the bytes that matches can still refer to. */
function slide(): void {
  const at = reachedTarget();
  if (at - window <= historyBytes) return;
  const distance = at - window - historyBytes;
  memory.copy(window, window + distance, historyBytes);
  moveTo(reachedSource(), at - distance);
  newAt -= distance;
}

/** Adds the rest of a length at `at` to `pendingBytes`. Returns the address after it, or 0 when it does not end before `end`. */
function readRest(at: usize, end: usize): usize {
  while (at < end) {
    const byte = <u32>load<u8>(at++);
    pendingBytes += byte;
    if (byte != 255) return at;
  }
  return 0;
}

/**
 * Decompresses a part of a sequence, as far as the source up to `end` and the target up to `targetEnd` allow. Returns 1 after progress, 0
 * when it needs more source or target, and -1 when the block is malformed unless the source continues after `end`.
 */
function step(end: usize, targetEnd: usize): i32 {
  const s = reachedSource();
  const d = reachedTarget();
  if (state == atSequence) {
    if (s >= end) return -1;
    const token = <u32>load<u8>(s);
    let at = s + 1;
    pendingBytes = token >>> 4;
    if (pendingBytes == 15) at = readRest(at, end);
    if (at == 0) return -1;
    matchNibble = token & 15;
    state = inLiterals;
    moveTo(at, d);
    return 1;
  }
  if (state == inLiterals) {
    const length = min<usize>(pendingBytes, min<usize>(end - s, targetEnd - d));
    memory.copy(d, s, length);
    pendingBytes -= <u32>length;
    moveTo(s + length, d + length);
    if (pendingBytes == 0) state = atOffset;
    else if (length == 0) return s == end ? -1 : 0;
    return 1;
  }
  if (state == atOffset) {
    if (end - s < 2) return -1;
    let at = s + 2;
    offset = <usize>load<u16>(s);
    if (offset == 0 || offset > d - window) return -1;
    pendingBytes = matchNibble + matchBytesMin;
    if (matchNibble == 15) at = readRest(at, end);
    if (at == 0) return -1;
    state = inMatch;
    moveTo(at, d);
    return 1;
  }
  const length = min<usize>(pendingBytes, targetEnd - d);
  if (length == 0) return 0;
  copyMatch(d, offset, length, targetEnd - d);
  pendingBytes -= <u32>length;
  moveTo(s, d + length);
  if (pendingBytes == 0) state = atSequence;
  return 1;
}

/** The last sequence of a block has no match. */
function isEnded(end: usize, isLast: bool): bool {
  return isLast && state == atOffset && reachedSource() == end;
}

/**
 * Continues with the block, which has been read up to `end`; with `isLast` it ends there. Returns 1 when one of the needles may occur in
 * the decompressed bytes, -1 when the block is malformed or has another decompressed length, else 0. Only after the last piece does 0 mean
 * that no needle occurs. Reads at most 64 bytes after `end`.
 */
export function searchPiece(end: usize, isLast: bool): i32 {
  const shortEnd = end - shortSourceBytes;
  let result: i32 = 0;
  let goesOn = true;
  while (goesOn) {
    const d = reachedTarget();
    const targetEnd = d + min<usize>(windowEnd - d, restBytes);
    if (state == atSequence && targetEnd - d > <usize>shortTargetBytes && reachedSource() < shortEnd)
      decompressShort(shortEnd, window, targetEnd - shortTargetBytes);
    const stepped = isEnded(end, isLast) ? 0 : step(end, targetEnd);
    restBytes -= <u32>(reachedTarget() - d);
    if (stepped > 0 && windowEnd - reachedTarget() > <usize>shortTargetBytes) continue;
    if (stepped < 0 && isLast) result = malformed;
    else if (lookAtNew()) result = found;
    else if (stepped == 0 && isEnded(end, isLast) != (restBytes == 0)) result = malformed;
    goesOn = result == 0 && stepped >= 0 && !isEnded(end, isLast);
    if (goesOn) slide();
  }
  return result;
}
