// Splits lines with delimited fields into spans; see line-spans.ts for the layout. The format is a list of steps of four
// words each, which ../delimited-lines.ts writes. There is no backtracking.
import {
  hasHighByte,
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

/** Expects certain bytes: their address, their number. */
const stepLiteral: u32 = 0;
/** Expects one byte of a set: address of its 256 flags. */
const stepOne: u32 = 1;
/** Takes all bytes that are in a set: address of its flags, least number. */
const stepRun: u32 = 2;
/** Takes all bytes up to one of three: these three bytes, least number. */
const stepUntil: u32 = 3;
/** Begins or ends a field: offset of its span in the line's spans. */
const stepBegin: u32 = 4;
const stepEnd: u32 = 5;
/** Expects the end of the line. */
const stepLineEnd: u32 = 6;
/** Jumps unless the next byte is in a set: address of its flags, step to jump to. */
const stepBranch: u32 = 7;
/** Jumps: step to jump to. */
const stepJump: u32 = 8;
/** Takes the line. */
const stepAccept: u32 = 9;

const stepBytes: usize = 16;

/** Address of the first byte from `at` on that equals one of the three lowest bytes of `stops`; `end` where there is none before it. */
function untilOneOf(at: usize, end: usize, stops: u32): usize {
  const first = i8x16.splat(<i8>stops);
  const second = i8x16.splat(<i8>(stops >> 8));
  const third = i8x16.splat(<i8>(stops >> 16));
  while (at < end) {
    const bytes = v128.load(at);
    const mask = i8x16.bitmask(
      v128.or(v128.or(i8x16.eq(bytes, first), i8x16.eq(bytes, second)), i8x16.eq(bytes, third)),
    );
    if (mask != 0) return min(at + <usize>ctz(mask), end);
    at += 16;
  }
  return end;
}

/** Splits the line [at, end). Returns whether it has the format of the steps. */
function takeSteps(text: usize, at: usize, end: usize, row: usize, steps: usize): bool {
  let step = steps;
  while (true) {
    const kind = load<u32>(step);
    const operand = <usize>load<u32>(step, 4);
    if (kind == stepBegin) {
      store<u32>(row + operand, <u32>(at - text));
    } else if (kind == stepEnd) {
      const span = row + operand;
      store<u32>(span, (<u32>(at - text) - load<u32>(span)) | (kindText << kindShift), 4);
    } else if (kind == stepLiteral) {
      const length = load<u32>(step, 8);
      if (<u32>(end - at) < length || !sameBytes(at, operand, length)) return false;
      at += length;
    } else if (kind == stepUntil) {
      const stop = untilOneOf(at, end, <u32>operand);
      if (<u32>(stop - at) < load<u32>(step, 8)) return false;
      at = stop;
    } else if (kind == stepRun) {
      const first = at;
      while (at < end && load<u8>(operand + <usize>load<u8>(at)) != 0) at++;
      if (<u32>(at - first) < load<u32>(step, 8)) return false;
    } else if (kind == stepOne) {
      if (at == end || load<u8>(operand + <usize>load<u8>(at)) == 0) return false;
      at++;
    } else if (kind == stepBranch) {
      if (at == end || load<u8>(operand + <usize>load<u8>(at)) == 0) {
        step = steps + <usize>load<u32>(step, 8) * stepBytes;
        continue;
      }
    } else if (kind == stepJump) {
      step = steps + operand * stepBytes;
      continue;
    } else if (kind == stepLineEnd) {
      if (at != end) return false;
    } else {
      return kind == stepAccept;
    }
    step += stepBytes;
  }
}

/**
 * Splits at most `linesMax` lines of [text + from, text + to), which is followed by a line feed. `isText` says that all of
 * it is UTF-8; otherwise only ASCII lines are taken. Returns the number of lines.
 */
export function splitDelimitedLines(
  text: usize,
  from: u32,
  to: u32,
  isText: u32,
  steps: usize,
  fields: u32,
  lines: usize,
  states: usize,
  spans: usize,
  linesMax: u32,
): u32 {
  const textEnd = text + to;
  const rowBytes = <usize>fields * spanBytes;
  let count: u32 = 0;
  let at = text + from;
  let row = spans;
  while (at < textEnd && count < linesMax) {
    memory.fill(row, 0, rowBytes);
    const feed = lineFeedFrom(at);
    const end = feed > at && load<u8>(feed - 1) == 0x0d ? feed - 1 : feed;
    let state = lineOdd;
    // An empty line is never a record, even if the steps accept it. NULs and a byte order mark before the text are left out elsewhere.
    const first = <u32>load<u8>(at);
    if (
      end > at &&
      first != 0 &&
      first != 0xef &&
      end - at <= takenLineBytesMax &&
      takeSteps(text, at, end, row, steps)
    ) {
      if (isText != 0 || !hasHighByte(at, end)) state = lineTaken;
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
