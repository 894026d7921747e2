import { isUtf8 } from 'node:buffer';
import { assert, repairUtf8, lineBytesMax, orDeadline, type Scratch } from '../../engine/index.js';
import type { Encoding, Multiline } from '../definition/definition.js';
import { LinePattern, startBytesMax, startInstructionsMax } from '../definition/line-pattern.js';
import { SourceError } from '../sources/byte-source.js';
import type { LineKernels } from './line-kernels.js';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Offset of the first byte of a line's text. NULs before it are no text: a file has them where its program writes on behind
 * what was truncated, or where a power cut took the content. A byte order mark before it was the beginning of another file.
 */
export function textStart(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; ;) {
    while (at < end && bytes[at] === 0) at++;
    const isMark = at + 3 <= end && bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf;
    if (!isMark) return at;
    at += 3;
  }
}

/** Finds the ends of records in content. In all calls a record begins at `start`. */
export interface RecordEnds {
  /**
   * Milliseconds without new data after which the last record is complete although nothing follows that shows it; null where
   * its line end shows it.
   */
  readonly timeoutMs: number | null;
  /**
   * End of the last record of bytes[start, end) that is surely complete; `start` where there is none. The last line may lack
   * its line end.
   */
  wholeTo(bytes: Uint8Array, start: number, end: number): number;
  /**
   * Begins the search for the end of a record that is longer than `lineBytesMax`, of which the first `searchedBytes` were
   * searched before. `beginning` has the first bytes, more than `lineBytesMax`.
   */
  long(searchedBytes: number, beginning: Uint8Array): LongRecord;
  /** The encoding of the content; absent for UTF-8. */
  readonly encoding?: Encoding;
  /** Whether the encoding has two bytes a character, so that NULs are part of it. */
  readonly isWide?: boolean;
  /** Whether bytes[…, end) ends with a line feed; absent where that is one byte. */
  endsLine?(bytes: Uint8Array, end: number): boolean;
}

/** Whether bytes[…, end) ends with a line feed. */
export function endsLine(ends: RecordEnds, bytes: Uint8Array, end: number): boolean {
  return ends.endsLine?.(bytes, end) ?? bytes[end - 1] === lineFeed;
}

/** End of the line feed at `at`, a byte 0x0a of bytes that begin with a character; -1 where it is part of another character. */
export function feedEnd(ends: RecordEnds, bytes: Uint8Array, at: number): number {
  const end = ends.isWide === true ? at + 2 - (at % 2) : at + 1;
  return end <= bytes.length && endsLine(ends, bytes, end) ? end : -1;
}

/** A search for the last byte of an overlong record, such as its line feed. */
export interface LongRecord {
  /** Where in the record the search begins. */
  readonly from: number;
  /** Position of the last byte in the next piece of content; -1 where it is not in it. */
  find(piece: Uint8Array): number;
}

/** Searches a line feed. */
const longLine = (searchedBytes: number): LongRecord => ({
  from: Math.max(searchedBytes, lineBytesMax),
  find: (piece) => piece.indexOf(lineFeed),
});

/** Each line is a record. */
export const singleLines: RecordEnds = {
  timeoutMs: null,
  long: longLine,
  wholeTo: (bytes, start, end) => start + bytes.subarray(start, end).lastIndexOf(lineFeed) + 1,
};

/**
 * Records of several lines. A record begins with a line that matches the pattern, at the beginning of the content, or where
 * the record before has reached its limits. So lines without a beginning are kept together too, nothing is left out, and the
 * records of a content do not depend on how it is cut into pieces.
 */
export class MultilineRecords implements RecordEnds {
  /** Number of lines of the record that `recordEnd` found last. */
  lines = 0;
  readonly timeoutMs: number;
  readonly long = longLine;
  readonly #start: LinePattern;
  readonly #linesMax: number;
  readonly #bytesMax: number;

  /** Throws `invalid` for an invalid pattern. */
  constructor({ start, timeoutMs, linesMax, bytesMax }: Multiline) {
    this.timeoutMs = timeoutMs;
    this.#start = new LinePattern(start, new Set(), startInstructionsMax);
    this.#linesMax = linesMax;
    this.#bytesMax = bytesMax;
  }

  wholeTo(bytes: Uint8Array, start: number, end: number): number {
    const content = bytes.subarray(0, end);
    const linesEnd = singleLines.wholeTo(content, start, end);
    let from = this.#lastStart(content, start, linesEnd);
    for (;;) {
      const next = this.#find(content, from, end, linesEnd, false);
      if (next < 0) return from;
      from = next;
    }
  }

  /**
   * End of the record that begins at `from`; at most `end`, which must end a line or the content. `isText` says that the
   * bytes are known to be UTF-8.
   */
  recordEnd(bytes: Uint8Array, from: number, end: number, isText: boolean): number {
    const found = this.#find(bytes, from, end, end, isText);
    return found < 0 ? end : found;
  }

  /** Whether a line begins a record. bytes[start, end) is the line without its line feed. */
  isStart(bytes: Uint8Array, start: number, end: number, isText: boolean): boolean {
    const lineEnd = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    const from = textStart(bytes, start, lineEnd);
    const textEnd = firstBytesEnd(bytes, from, lineEnd);
    if (isText || isUtf8(bytes.subarray(from, textEnd))) return this.#matches(bytes, from, textEnd);
    const repaired = repairUtf8(bytes, from, textEnd).bytes;
    return this.#matches(repaired, 0, repaired.length);
  }

  #matches(text: Uint8Array, start: number, end: number): boolean {
    const matched = this.#start.match(text, start, end);
    assert(matched !== undefined, 'the pattern decides for so few bytes');
    return matched;
  }

  /** End of the record that began at `from`, if it ends before `end`; else -1. Lines up to `linesEnd` are complete. */
  #find(bytes: Uint8Array, from: number, end: number, linesEnd: number, isText: boolean): number {
    let at = from;
    for (let lines = 0; ; lines++) {
      this.lines = lines;
      if (lines === this.#linesMax) return at;
      const feed = bytes.indexOf(lineFeed, at);
      const lineEnd = feed < 0 || feed >= end ? end : feed;
      if (lines > 0) {
        if (lineEnd - from > this.#bytesMax) return at;
        if (at < linesEnd && this.isStart(bytes, at, lineEnd, isText)) return at;
      }
      if (lineEnd === end) {
        if (end > at) this.lines++;
        return -1;
      }
      at = lineEnd + 1;
    }
  }

  /** Beginning of the last complete line of bytes[start, linesEnd) that begins a record; `start` where there is none. */
  #lastStart(bytes: Uint8Array, start: number, linesEnd: number): number {
    for (let lineEnd = linesEnd - 1; lineEnd > start;) {
      const lineStart = start + bytes.subarray(start, lineEnd).lastIndexOf(lineFeed) + 1;
      if (lineStart === start || this.isStart(bytes, lineStart, lineEnd, false)) return lineStart;
      lineEnd = lineStart - 1;
    }
    return start;
  }
}

/** End of the bytes that `multiline.start` is matched against. It does not cut a character. */
function firstBytesEnd(bytes: Uint8Array, start: number, end: number): number {
  if (end - start <= startBytesMax) return end;
  let at = start + startBytesMax;
  // A character has at most three bytes after its first.
  for (let back = 0; back < 3 && (bytes[at]! & 0xc0) === 0x80; back++) at--;
  return at;
}

/** A text: bytes[start, end). */
export interface TextRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Joins the lines of a record by `\n`: removes each `\r` before a line feed, and empty lines at the beginning and the end. */
export function joinLines(bytes: Uint8Array, from: number, to: number): TextRange {
  let start = from;
  for (let next = emptyLineEnd(bytes, start, to); next > start; next = emptyLineEnd(bytes, start, to)) {
    start = next;
  }
  let end = to;
  if (end > start && bytes[end - 1] === carriageReturn) end--;
  while (end > start && bytes[end - 1] === lineFeed) {
    end--;
    if (end > start && bytes[end - 1] === carriageReturn) end--;
  }
  const text = bytes.subarray(start, end);
  return text.includes(carriageReturn) ? withoutReturns(text) : { bytes, start, end };
}

/** End of the empty line that begins at `at`; `at` where there is none. */
function emptyLineEnd(bytes: Uint8Array, at: number, end: number): number {
  const feed = at < end && bytes[at] === carriageReturn ? at + 1 : at;
  return feed < end && bytes[feed] === lineFeed ? feed + 1 : at;
}

function withoutReturns(text: Uint8Array): TextRange {
  const bytes = new Uint8Array(text.length);
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== carriageReturn || text[i + 1] !== lineFeed) bytes[end++] = text[i]!;
  }
  return { bytes, start: 0, end };
}

/** The content to cut into frames, as pieces in order. */
export interface FrameSource {
  readonly path: string;
  /** The next piece, never empty; null at the end. Valid until the next call. */
  next(): Promise<Uint8Array | null>;
  /** Like `next`, but reads into `target`, at most as many bytes as it holds; returns 0 at the end. */
  readonly nextInto?: ((target: Uint8Array) => Promise<number>) | undefined;
  /** Called with all content that was returned in frames, in order. */
  take?(bytes: Uint8Array): void;
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
    // A frame is filled before records are searched in it, because each search may begin at its first byte.
    while (!this.eager && !this.ended && this.to < this.frameBytes) await this.fill();
    let wholeTo = this.ends.wholeTo(this.buffer, 0, this.to);
    while (!this.ended && !this.quiet && wholeTo === 0 && this.to <= lineBytesMax) {
      if ((await this.fill()) > 0) wholeTo = this.ends.wholeTo(this.buffer, 0, this.to);
    }
    if (this.offset === 0 && this.ends.encoding === undefined)
      requireEightBitText(this.source.path, this.buffer.subarray(0, this.to));
    if (wholeTo > 0) return this.lines(wholeTo);
    // Half a character is left, so that what may follow it begins with a whole one.
    if (this.ended && this.ends.isWide === true) this.to -= this.to % 2;
    if (this.to > lineBytesMax) {
      const hole = this.ends.isWide === true ? 0 : holeEdge(this.buffer, this.to);
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
    const isOpen = this.to > 0 && endsLine(this.ends, this.buffer, this.to);
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
    this.source.take?.(this.buffer.subarray(this.from, end));
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
    return { kind: 'tail', bytes, end, offset, endsInLine: !endsLine(this.ends, bytes, end) };
  }

  private async longLine(): Promise<LongFrame> {
    const bytes = this.buffer.slice(0, lineBytesMax);
    const offset = this.offset;
    const search = this.ends.long(0, this.buffer.subarray(0, this.to));
    let lengthBytes = 0;
    let lineEnd = -1;
    for (let from = search.from; lineEnd < 0 && (this.to > 0 || !this.ended); from = 0) {
      if (this.to === 0) await this.fill();
      lineEnd = search.find(this.buffer.subarray(from, this.to));
      if (lineEnd >= 0) lineEnd += from;
      lengthBytes += lineEnd < 0 ? this.to : lineEnd;
      this.take(lineEnd < 0 ? this.to : lineEnd + 1);
      if (lineEnd < 0) this.from = this.to = 0;
    }
    const place = { bytes, end: bytes.length, offset, endsInLine: lineEnd < 0 };
    return { kind: 'long', ...place, lengthBytes };
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

/** Throws `SourceError` for content that appears to begin with text in a 16-bit encoding. */
export function requireEightBitText(path: string, content: Uint8Array): void {
  const encoding = wideEncoding(content.subarray(0, 64));
  if (encoding === null) return;
  const message = `${path} is ${encoding} text: write encoding: ${encoding.toLowerCase()} in the agent's file`;
  throw new SourceError('unsupported', message, { path, offset: 0 });
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

/** Bytes that slack and alignment add to each buffer. */
export const bufferOverheadBytes = 128;

/** Addresses of the lines and of the results in the kernels' memory. */
export interface LinesArea {
  readonly text: number;
  /** The lines to split are [text + from, text + to), followed by a line feed. */
  readonly from: number;
  readonly to: number;
  /** Whether all of the text is known to be UTF-8. */
  readonly isText: boolean;
  /** Two words per line: its beginning, and the position of its line feed. */
  readonly lines: number;
  /** One byte per line: whether it was taken. */
  readonly states: number;
  /** Two words per line and field: its beginning; its kind and length. */
  readonly spans: number;
  readonly linesMax: number;
}

/** Splits lines of one format into numbered fields. */
export interface LineSplitter {
  readonly fields: number;
  /** Upper bound of the scratch memory that `place` takes, in bytes. */
  readonly sizeBytes: number;
  /** Writes the kernel's parameters of the format to scratch memory that was just opened. */
  place(scratch: Scratch): void;
  /** Splits at least one and at most `linesMax` lines. Returns their number. */
  split(kernels: LineKernels, area: LinesArea): number;
}
