import { lineBytesMax, type RejectedLine } from '../../engine/index.js';
import { type AgentDefinition, hasUndatedTimes, lineFormatOf } from '../definition/definition.js';
import type { RejectLine } from './line-decoder.js';
import type { LongFrame } from './line-framing.js';

/** Lines that became no record: line i is bytes[starts[i], ends[i]). Parallel lists, because there may be very many lines. */
export interface RejectedPlaces {
  readonly reasons: readonly string[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** What is kept of line i where it is not its bytes: without what is masked, or in UTF-8. */
  readonly texts: readonly (Uint8Array | undefined)[];
  /** What is kept before it, because it can't be decoded again without that: lines, each with its line end. */
  readonly befores?: readonly (Uint8Array | undefined)[];
}

/** What is kept of rejected line i. A view, not a copy, unless something is kept before it. */
export function rejectedText(
  { starts, ends, texts, befores }: RejectedPlaces,
  i: number,
  bytes: Uint8Array,
): Uint8Array {
  const line = texts[i] ?? bytes.subarray(starts[i], ends[i]);
  const before = befores?.[i];
  return before === undefined ? line : Buffer.concat([before, line]);
}

/** Collects the lines of one range that become no record. */
export class RejectedLines {
  readonly places = {
    reasons: [] as string[],
    starts: [] as number[],
    ends: [] as number[],
    texts: [] as (Uint8Array | undefined)[],
    befores: [] as (Uint8Array | undefined)[],
  };

  /** Adds the line at bytes[start, end), of which `text` is kept if it is given. Only the beginning of an overlong line is kept. */
  readonly add: RejectLine = (reason, start, end, text, before) => {
    const { reasons, starts, ends, texts, befores } = this.places;
    const lengthBytes = text?.length ?? end - start;
    const tooLong = lengthBytes > lineBytesMax;
    if (before !== undefined) befores[reasons.length] = before;
    reasons.push(tooLong ? longLineReason(lengthBytes) : reason);
    starts.push(start);
    ends.push(tooLong && text === undefined ? start + lineBytesMax : end);
    texts.push(tooLong ? text?.subarray(0, lineBytesMax) : text);
  };

  /**
   * Rejects the rest of a line whose first part is stored: bytes[start, end) begins inside that line. Returns the offset of
   * the next line.
   */
  addRest(bytes: Uint8Array, start: number, end: number): number {
    const lineFeed = bytes.subarray(start, end).indexOf(0x0a);
    const lineEnd = lineFeed < 0 ? end : start + lineFeed;
    const textEnd = lineEnd > start && bytes[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd;
    if (textEnd > start) this.add(continuationReason, start, textEnd);
    return Math.min(end, lineEnd + 1);
  }
}

/** An overlong line as a rejected one. With `continuesLine` it is the rest of a line whose first part is stored. */
export function rejectedLongLine({ lengthBytes, end }: LongFrame, continuesLine: boolean): RejectedPlaces {
  const reason = continuesLine ? continuationReason : longLineReason(lengthBytes);
  return { reasons: [reason], starts: [0], ends: [end], texts: [undefined] };
}

/** Why a line longer than `lineBytesMax` is rejected. */
export function longLineReason(lengthBytes: number): string {
  return `the line has ${lengthBytes} bytes, more than ${lineBytesMax}; its first ${lineBytesMax} are kept`;
}

/** Why the rest of a line is rejected whose first part was taken as a complete line. */
export const continuationReason =
  'it continues a line whose beginning was already stored when the file ended in the middle of it';

const longLineShape = /^the line has \d+ bytes, more than \d+; its first \d+ are kept$/;

/** Whether a line was rejected because it is not complete. No pattern can make a record of it later. */
export function isPartOfLine(reason: string): boolean {
  return reason === continuationReason || longLineShape.test(reason);
}

/** What is kept of a part of a line: nothing where lines are masked, because a mask may need the whole line. */
export function keptPart(definition: AgentDefinition, part: Uint8Array): Uint8Array {
  return lineFormatOf(definition)?.mask === undefined ? part : new Uint8Array(0);
}

/** Where rejected lines come from. */
export interface RejectedOrigin {
  readonly definition: AgentDefinition;
  /** Path of their file. */
  readonly file: string;
  /** Offset of `bytes[0]` in the file's content. */
  readonly base: number;
  /** Latest time at which a line at a content offset was written, in milliseconds since the epoch. */
  readonly writtenMs: (offset: number) => number;
}

/**
 * Converts rejected lines to the form in which they are stored. A `line` may be a view, not a copy. Where the
 * agent's times lack the year or the date, a line gets the time when it was written, so that it can be decoded later.
 */
export function* toRejectedLines(
  places: RejectedPlaces,
  bytes: Uint8Array,
  { definition, file, base, writtenMs }: RejectedOrigin,
): Generator<RejectedLine> {
  const { reasons, starts } = places;
  if (reasons.length === 0) return;
  const isUndated = hasUndatedTimes(definition);
  for (let i = 0; i < reasons.length; i++) {
    const offset = base + starts[i]!;
    const reason = reasons[i]!;
    const text = rejectedText(places, i, bytes);
    const line = { reason, file, offset, line: isPartOfLine(reason) ? keptPart(definition, text) : text };
    yield isUndated ? { ...line, writtenMs: writtenMs(offset) } : line;
  }
}
