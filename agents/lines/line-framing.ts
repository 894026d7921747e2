import { assert, lineBytesMax, orDeadline } from '../../engine/index.js';
import { singleLines, textStart, type RecordEnds } from './record-ends.js';
import { SourceError } from '../sources/source-error.js';

/** The content to cut into frames, as pieces in order. */
export interface FrameSource {
  readonly path: string;
  /** The next piece, never empty; null at the end. Valid until the next call. */
  next(): Promise<Uint8Array | null>;
  /** Like `next`, but reads into `target`, at most as many bytes as it holds; returns 0 at the end. */
  readonly nextInto?: ((target: Uint8Array) => Promise<number>) | undefined;
  /** Called with all content that was returned in frames, in order. */
  hashed?(bytes: Uint8Array): void;
}

interface CutContent {
  /** The frame is bytes[0, end). */
  readonly bytes: Uint8Array;
  readonly end: number;
  /** Content offset of `bytes[0]`. */
  readonly offset: number;
  /** Whether the content ends with the frame, inside a line. */
  readonly endsInLine: boolean;
}

/**
 * Lines of complete records, each ended by `\n`; or what ends where NULs begin or end, which are no part of a line. Valid until
 * the next call.
 */
export interface LinesFrame extends CutContent {
  readonly kind: 'lines';
}

/**
 * The last record of the content, which may be incomplete: a line without its end, or lines that may continue. It counts as
 * taken only after `keepTail`.
 */
export interface TailFrame extends CutContent {
  readonly kind: 'tail';
}

/** A line longer than `lineBytesMax`, of which only that many bytes are kept. */
export interface LongFrame extends CutContent {
  readonly kind: 'long';
  /** Length of the whole line in bytes, without its line end. */
  readonly lengthBytes: number;
}

export type Frame = LinesFrame | TailFrame | LongFrame;

/** Default size of a frame while there is more content. */
export const frameBytesDefault = 1024 * 1024;

/** Size of a framer's buffer: room for a line of the maximum length, and for a piece after it. */
export function framerBufferBytes(frameBytes: number): number {
  return lineBytesMax + frameBytes;
}

/** Bytes that are read at once where a line is longer than its frame. */
const pieceBytesMin = 256 * 1024;

const lineFeed = 0x0a;

/** Cuts content into frames of complete records, in one buffer of fixed size. Rejects UTF-16. */
export class LineFramer {
  private buffer: Uint8Array;
  private from = 0;
  private to = 0;
  private piece: Uint8Array | null = null;
  private coming: Promise<Uint8Array | null> | undefined;
  private ended = false;
  /** Whether nothing has come for so long that the last record is taken as complete. */
  private quiet = false;

  /**
   * @param offset content offset of the source's position
   * @param eager return records as soon as they are there (for a live stream) instead of full frames
   * @param ends tells where records end
   */
  constructor(
    private readonly source: FrameSource,
    private offset = 0,
    private readonly eager = false,
    private readonly ends: RecordEnds = singleLines,
    /** Size of a frame while there is more content. */
    private readonly frameBytes = frameBytesDefault,
    /** Allocates a buffer of `framerBufferBytes`. */
    private readonly newBuffer: () => Uint8Array = () => new Uint8Array(framerBufferBytes(frameBytes)),
  ) {
    this.buffer = newBuffer();
  }

  /** The next frame; null at the end. Throws `SourceError`. */
  async next(): Promise<Frame | null> {
    this.buffer.copyWithin(0, this.from, this.to);
    this.to -= this.from;
    this.from = 0;
    this.quiet = false;
    let wholeTo = this.ends.wholeTo(this.buffer, 0, this.to);
    while (
      !this.ended &&
      !this.quiet &&
      (wholeTo === 0 ? this.to <= lineBytesMax : !this.eager && this.to < this.frameBytes)
    ) {
      if ((await this.fill()) > 0) wholeTo = this.ends.wholeTo(this.buffer, 0, this.to);
    }
    if (this.offset === 0) this.requireEightBitText();
    if (wholeTo > 0) return this.lines(wholeTo);
    if (this.to > lineBytesMax) {
      const hole = holeEdge(this.buffer, this.to);
      return hole > 0 ? this.lines(hole) : this.longLine();
    }
    if (this.to === 0) return null;
    return this.ended ? this.tail() : this.lines(this.to);
  }

  /** Content offset after everything that was returned. */
  get contentOffset(): number {
    return this.offset;
  }

  /** Leaves the buffer of the last frame to the caller, and continues in another one. */
  leaveBuffer(): void {
    const other = this.newBuffer();
    assert(other.length === this.buffer.length, 'every buffer of a framer has the same size');
    const kept = this.buffer.subarray(this.from, this.to);
    other.set(kept);
    this.from = 0;
    this.to = kept.length;
    this.buffer = other;
  }

  /** Takes the tail frame that `next` returned last: the content ends after it. */
  keepTail(): void {
    this.take(this.to);
  }

  private async fill(): Promise<number> {
    const { nextInto } = this.source;
    if (nextInto !== undefined) return this.fillBy(nextInto);
    if (this.piece === null) {
      this.coming ??= this.source.next();
      const piece = await this.pieceOrSilence(this.coming);
      if (piece === 'deadline') {
        this.quiet = true;
        return 0;
      }
      this.coming = undefined;
      this.piece = piece;
    }
    if (this.piece === null) {
      this.ended = true;
      return 0;
    }
    const added = Math.min(this.piece.length, this.buffer.length - this.to);
    this.buffer.set(this.piece.subarray(0, added), this.to);
    this.to += added;
    this.piece = added < this.piece.length ? this.piece.subarray(added) : null;
    return added;
  }

  /** Waits for the next piece; with an open multi-line record whose last line is complete, only as long as the timeout. */
  private pieceOrSilence(coming: Promise<Uint8Array | null>): Promise<Uint8Array | null | 'deadline'> {
    const { timeoutMs } = this.ends;
    const isOpen = this.to > 0 && this.buffer[this.to - 1] === lineFeed;
    return this.eager && timeoutMs !== null && isOpen ? orDeadline(coming, timeoutMs) : coming;
  }

  private async fillBy(nextInto: (target: Uint8Array) => Promise<number>): Promise<number> {
    const end = Math.min(this.buffer.length, Math.max(this.frameBytes, this.to + pieceBytesMin));
    const added = await nextInto(this.buffer.subarray(this.to, end));
    if (added === 0) this.ended = true;
    this.to += added;
    return added;
  }

  private take(end: number): void {
    this.source.hashed?.(this.buffer.subarray(this.from, end));
    this.offset += end - this.from;
    this.from = end;
  }

  private lines(end: number): LinesFrame {
    const { buffer: bytes, offset } = this;
    this.take(end);
    return { kind: 'lines', bytes, end, offset, endsInLine: false };
  }

  private tail(): TailFrame {
    const { buffer: bytes, to: end, offset } = this;
    return { kind: 'tail', bytes, end, offset, endsInLine: bytes[end - 1] !== lineFeed };
  }

  private async longLine(): Promise<LongFrame> {
    const bytes = this.buffer.slice(0, lineBytesMax);
    const offset = this.offset;
    let lengthBytes = 0;
    let lineEnd = -1;
    while (lineEnd < 0 && (this.to > 0 || !this.ended)) {
      if (this.to === 0) await this.fill();
      lineEnd = this.buffer.subarray(0, this.to).indexOf(lineFeed);
      lengthBytes += lineEnd < 0 ? this.to : lineEnd;
      this.take(lineEnd < 0 ? this.to : lineEnd + 1);
      if (lineEnd < 0) this.from = this.to = 0;
    }
    const place = { bytes, end: bytes.length, offset, endsInLine: lineEnd < 0 };
    return { kind: 'long', ...place, lengthBytes };
  }

  private requireEightBitText(): void {
    const { path } = this.source;
    const encoding = wideEncoding(this.buffer.subarray(0, Math.min(this.to, 64)));
    if (encoding === null) return;
    throw new SourceError(
      'unsupported',
      `${path} is ${encoding} text; only UTF-8 is read. Convert it: iconv -f ${encoding} -t UTF-8`,
      { path, offset: 0 },
    );
  }
}

/** So many NULs inside a line that is too long are a hole, not part of its text. */
const holeBytesMin = 4096;

/**
 * Where a line that is too long, and begins with bytes[0, end), is cut: behind the NULs at its beginning, or before those that
 * reach the maximum length, because what follows them was written as a line of its own. 0 where it is not cut.
 */
export function holeEdge(bytes: Uint8Array, end: number): number {
  const start = textStart(bytes, 0, end);
  if (start > 0) return start;
  let edge = lineBytesMax;
  while (bytes[edge - 1] === 0) edge--;
  return edge <= lineBytesMax - holeBytesMin ? edge : 0;
}

/** The 16-bit encoding that `head` appears to be in: by its byte order mark, or because it is ASCII with every other byte 0; else null. */
export function wideEncoding(head: Uint8Array): 'UTF-16LE' | 'UTF-16BE' | null {
  if (head.length < 2) return null;
  if (head[0] === 0xff && head[1] === 0xfe) return 'UTF-16LE';
  if (head[0] === 0xfe && head[1] === 0xff) return 'UTF-16BE';
  // Fewer bytes may have this pattern by chance, as in a short line of binary data.
  if (head.length < 16) return null;
  const even = everyOther(head, 0);
  const odd = everyOther(head, 1);
  if (even === 'text' && odd === 'zero') return 'UTF-16LE';
  return even === 'zero' && odd === 'text' ? 'UTF-16BE' : null;
}

function everyOther(bytes: Uint8Array, first: number): 'text' | 'zero' | 'mixed' {
  let zeros = 0;
  let count = 0;
  for (let i = first; i < bytes.length; i += 2) {
    count++;
    if (bytes[i] === 0) zeros++;
  }
  return zeros === count ? 'zero' : zeros === 0 ? 'text' : 'mixed';
}
