import { assert, type BatchBuilder, lineBytesMax } from '../../engine/index.js';
import type { Frame } from '../lines/line-framing.js';
import type { RecordDecoder } from '../decode/line-decoder.js';

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

  /** Keeps an overlong line, which may be the rest of one that was stored. Returns where the frame ends. */
  addLong(frame: Frame & { kind: 'long' }, continuesLine: boolean): number {
    this.reasons.push(continuesLine ? continuationReason : longLineReason(frame.lengthBytes));
    this.starts.push(0);
    this.ends.push(frame.bytes.length);
    return frameEnd(frame);
  }

  /** Keeps the rest of a line whose beginning was stored, at `start` of bytes[start, end). Returns where the next begins. */
  addRest(bytes: Uint8Array, start: number, end: number): number {
    const lineFeed = bytes.subarray(start, end).indexOf(0x0a);
    const lineEnd = lineFeed < 0 ? end : start + lineFeed;
    const textEnd = lineEnd > start && bytes[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd;
    if (textEnd > start) this.add(continuationReason, start, textEnd);
    return Math.min(end, lineEnd + 1);
  }

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

const longLineShape = /^the line has \d+ bytes, more than \d+; its first \d+ are kept$/;

/** Whether a line was rejected because it is no whole line, and could not be loaded however well it reads. */
export function isPartOfLine(reason: string): boolean {
  return reason === continuationReason || longLineShape.test(reason);
}

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
    if (frame.kind === 'long') {
      const end = rejected.addLong(frame, this.continuesLine);
      this.continuesLine = false;
      return end;
    }
    let from = at;
    if (this.continuesLine) {
      this.continuesLine = false;
      from = rejected.addRest(frame.bytes, from, frame.end);
      if (from === frame.end) return from;
    }
    const reached = this.decoder.decode(frame.bytes, from, frame.end, this.builder, rejected.add);
    assert(reached > from || this.builder.full, 'the decoder took no line');
    return reached;
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

/** Whether the content ends with the frame, inside a line. */
export function frameEndsInLine(frame: Frame): boolean {
  return frame.kind === 'tail' ? frame.endsInLine : frame.kind === 'long' && !frame.ended;
}
