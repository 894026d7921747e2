// Needles looked for in an LZ4 block as it is decompressed, a piece at a time: what it makes passes through a window that stays in
// the nearest caches, and none of it is kept. See ../block-search.ts.
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

/** Farther back no match reaches: so much of what was made stays in the window. */
const historyBytes: usize = 65536;

/** What comes next in the block: a sequence, the rest of its literals, its offset, or the rest of its match. */
const atSequence: u32 = 0;
const inLiterals: u32 = 1;
const atOffset: u32 = 2;
const inMatch: u32 = 3;

/** Results, beside 0: nothing so far. */
const found: i32 = 1;
const malformed: i32 = -1;

let window: usize = 0;
let windowEnd: usize = 0;
/** What has been made and not looked at yet begins here. */
let newAt: usize = 0;
/** Bytes that the rest of the block has to make. */
let restBytes: u32 = 0;
let state: u32 = atSequence;
let matchNibble: u32 = 0;
let pendingBytes: u32 = 0;
let offset: usize = 0;
let needles: usize = 0;
let needleCount: u32 = 0;

/**
 * Begins with a block at `source` that makes `length` bytes. The window has room for `historyBytes`, the longest needle and a
 * piece of what is made, and is followed by slack.
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

/** Whether one of the needles may end in [newFrom, to), of a text that begins at `from`. */
function mayEndIn(from: usize, newFrom: usize, to: usize): bool {
  for (let k: u32 = 0; k < needleCount; k++) {
    const needle = needles + <usize>k * needleBytes;
    const length = load<u32>(needle, 4);
    const at = newFrom < from + length ? from : newFrom - length + 1;
    if (mayHold(at, to, load<u32>(needle), length, load<u32>(needle, 8), load<u32>(needle, 12))) return true;
  }
  return false;
}

/** As `searchPiece`, for all of a text that is not compressed. */
export function searchText(text: usize, length: u32, needlesAt: usize, count: u32): i32 {
  needles = needlesAt;
  needleCount = count;
  return mayEndIn(text, text, text + length) ? found : 0;
}

/** Whether one of the needles stands where something new has been made; that is old from here on. */
function lookAtNew(): bool {
  const from = newAt;
  newAt = reachedTarget();
  return mayEndIn(window, from, newAt);
}

/** Makes room: only what matches can still reach stays. */
function slide(): void {
  const at = reachedTarget();
  if (at - window <= historyBytes) return;
  const distance = at - window - historyBytes;
  memory.copy(window, window + distance, historyBytes);
  moveTo(reachedSource(), at - distance);
  newAt -= distance;
}

/** Reads the rest of a length at `at`, into `pendingBytes`; returns where it ends, or 0 when that is not before `end`. */
function readRest(at: usize, end: usize): usize {
  while (at < end) {
    const byte = <u32>load<u8>(at++);
    pendingBytes += byte;
    if (byte != 255) return at;
  }
  return 0;
}

/**
 * Takes one step of any sequence, as far as the source reaches up to `end` and the target to `targetEnd`. Returns 1 when it has,
 * 0 when there must be more of either first, and -1 for what is malformed if the source is to reach no farther.
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
 * Goes on with the block, which reaches up to `end` so far, or ends there (`isLast`). Returns 1 when one of the needles may stand in
 * what it makes, -1 when it is malformed or makes another number of bytes, and else 0: after the last piece, certainly none does.
 * 64 bytes behind `end` are read, and not more than that.
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
