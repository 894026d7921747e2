import { assert, type BatchBuilder } from '../../engine/index.js';
import type { LinesOrigin, RecordDecoder } from '../decode/line-decoder.js';
import { RejectedLines, type RejectedPlaces } from './rejected-lines.js';

/** Lines at bytes[start, end), all of one file. The last one may lack its line end. */
export interface LineRange extends LinesOrigin {
  readonly start: number;
  readonly end: number;
  /** Whether the range begins inside a line whose first part is already stored. */
  readonly continuesLine: boolean;
}

/** The result of decoding a range. */
export interface DecodedRange {
  /** Number of records. */
  readonly rows: number;
  /** End offset of the last line that was decoded; less than the range's end where the batch became full. */
  readonly reached: number;
  readonly rejected: RejectedPlaces;
}

/** Decodes the lines of a range into `builder` until the builder is full. */
export function decodeRange(
  decoder: RecordDecoder,
  bytes: Uint8Array,
  range: Omit<LineRange, keyof LinesOrigin>,
  builder: BatchBuilder,
): DecodedRange {
  const rowsBefore = builder.rows;
  const rejected = new RejectedLines();
  let reached = firstLine(bytes, range, rejected);
  if (reached < range.end) reached = decoder.decode(bytes, reached, range.end, builder, rejected.add);
  assert(reached > range.start || reached === range.end || builder.full, 'the decoder took no line');
  return { rows: builder.rows - rowsBefore, reached, rejected: rejected.places };
}

/** Offset of the first complete line of a range. The rest of a line before it is rejected. */
function firstLine(
  bytes: Uint8Array,
  { start, end, continuesLine }: Omit<LineRange, keyof LinesOrigin>,
  rejected: RejectedLines,
): number {
  // NULs mean that the rest was never written.
  return continuesLine && bytes[start] !== 0 ? rejected.addRest(bytes, start, end) : start;
}

/** The ranges that are still to be decoded after a job with the results `done`. The first begins where the batch became full. */
export function rangesLeft(
  ranges: readonly LineRange[],
  done: readonly DecodedRange[],
  years: LinesOrigin['written']['years'],
): LineRange[] {
  const last = ranges[done.length - 1];
  const left = ranges.slice(done.length);
  if (last === undefined) return left;
  const { reached } = done.at(-1)!;
  if (reached === last.end) return left;
  const written = { ...last.written, years };
  return [{ ...last, start: reached, continuesLine: false, written }, ...left];
}
