import type { BatchBuilder } from '../engine/batch-builder.js';
import { assert } from '../engine/assert.js';
import { lineBytesMax } from '../engine/limits.js';
import type { Frame } from './line-framing.js';
import type { RecordDecoder } from './record-decoder.js';

/** Lines of one frame that became no record: parallel lists, because a frame may hold very many of them. */
export class RejectedLines {
  readonly reasons: string[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  get count(): number {
    return this.reasons.length;
  }

  /** Keeps a line at bytes[start, end), of an overlong one only the beginning. */
  readonly add = (reason: string, start: number, end: number): void => {
    const tooLong = end - start > lineBytesMax;
    this.reasons.push(tooLong ? longLineReason(end - start) : reason);
    this.starts.push(start);
    this.ends.push(tooLong ? start + lineBytesMax : end);
  };

  clear(): void {
    this.reasons.length = 0;
    this.starts.length = 0;
    this.ends.length = 0;
  }
}

/** What is told of a line that is longer than we take. */
export function longLineReason(lengthBytes: number): string {
  return `the line has ${lengthBytes} bytes, more than ${lineBytesMax}; its first ${lineBytesMax} are kept`;
}

/** What is told of the rest of a line whose beginning was taken for a whole line. */
export const continuationReason =
  'it continues a line that was stored when the file ended in the middle of it, so it is no line of its own';

/** Decodes the frames of one source. */
export class FrameDecoder {
  private continuesLine: boolean;

  constructor(
    private readonly decoder: RecordDecoder,
    private readonly builder: BatchBuilder,
    /** The source goes on inside a line, of which the rest is rejected. */
    continuesLine: boolean,
  ) {
    this.continuesLine = continuesLine;
  }

  /** Values that did not read as their type, and byte sequences that were not UTF-8, so far. */
  get counters(): RecordDecoder['counters'] {
    return this.decoder.counters;
  }

  /**
   * Decodes from `at` on until the builder is full or the frame is done; returns where it stopped. Positions in
   * `rejected` are those of `frame.bytes`.
   */
  decode(frame: Frame, at: number, rejected: RejectedLines): number {
    if (frame.kind === 'long') return this.rejectLong(frame, rejected);
    let from = at;
    if (this.continuesLine) {
      from = this.rejectRest(frame.bytes, from, frame.end, rejected);
      if (from === frame.end) return from;
    }
    const reached = this.decoder.decode(frame.bytes, from, frame.end, this.builder, rejected.add);
    assert(reached > from || this.builder.full, 'the decoder took no line');
    return reached;
  }

  private rejectLong(frame: Frame & { kind: 'long' }, rejected: RejectedLines): number {
    rejected.reasons.push(this.continuesLine ? continuationReason : longLineReason(frame.lengthBytes));
    rejected.starts.push(0);
    rejected.ends.push(frame.bytes.length);
    this.continuesLine = false;
    return frameEnd(frame);
  }

  private rejectRest(bytes: Uint8Array, start: number, end: number, rejected: RejectedLines): number {
    this.continuesLine = false;
    const lineFeed = bytes.subarray(start, end).indexOf(0x0a);
    const lineEnd = lineFeed < 0 ? end : start + lineFeed;
    const textEnd = lineEnd > start && bytes[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd;
    if (textEnd > start) rejected.add(continuationReason, start, textEnd);
    return Math.min(end, lineEnd + 1);
  }
}

/** Position in `frame.bytes` where its lines begin. */
export function frameStart(frame: Frame): number {
  return frame.kind === 'long' ? 0 : frame.start;
}

/** Position in `frame.bytes` where its lines end. */
export function frameEnd(frame: Frame): number {
  return frame.kind === 'long' ? frame.bytes.length : frame.end;
}
