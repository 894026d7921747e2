// Lines whose fields stand between delimiters, taken apart into spans: see line-spans.ts for the layout. What a line must look
// like is a list of steps, four words each, which ../delimited-lines.ts lays out. No step is ever taken back.
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

/** Bytes that must stand here: their address, their number. */
const stepLiteral: u32 = 0;
/** One byte of a set: the address of its 256 flags. */
const stepOne: u32 = 1;
/** As many bytes of a set as there are: the address of its flags, the least number. */
const stepRun: u32 = 2;
/** All bytes up to one of three: these, the least number. */
const stepUntil: u32 = 3;
/** A field begins, or ends: where its span is in the line's spans. */
const stepBegin: u32 = 4;
const stepEnd: u32 = 5;
/** The line ends. */
const stepLineEnd: u32 = 6;
/** Goes on elsewhere unless the next byte is in a set: the address of its flags, the step. */
const stepBranch: u32 = 7;
/** Goes on elsewhere: the step. */
const stepJump: u32 = 8;
/** The line is taken. */
const stepAccept: u32 = 9;

const stepBytes: usize = 16;

/** The address of the first byte from `at` on that is one of the three lowest bytes of `stops`, `end` where there is none before it. */
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

/** Takes the line [at, end) apart. Returns whether it looks as the steps say. */
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
 * Takes apart lines of [text + from, text + to), behind which a line feed stands, at most `linesMax`. `isText` says that all of it
 * is UTF-8; else only lines of ASCII are taken. Returns the number of lines.
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
    // An empty line is no record, whatever the steps say.
    if (end > at && end - at <= takenLineBytesMax && takeSteps(text, at, end, row, steps)) {
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
