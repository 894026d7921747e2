import { lineBytesMax } from '../../engine/index.js';
import {
  contentTail,
  grownHead,
  headBytesMax,
  tailBytesMax,
  type SourcePosition,
} from '../sources/source-position.js';
import {
  endsLine,
  holeEdge,
  requireEightBitText,
  textStart,
  type RecordEnds,
} from '../decode/line-framing.js';
import type { RecordEndsOf } from '../decode/record-ends.js';
import { continuationReason, longLineReason, rejectedLongLine } from '../decode/rejected-lines.js';
import type { FollowedFile } from './logs/followed-file.js';
import { aheadBytes, pieceBytes, type GatheredLines, type LineFrame } from './line-frame.js';
import type { LogHandle, Allocation } from './logs/log-files.js';
import type { FollowedContent, PackedContent } from './logs/log-state.js';

/** Data that is counted to find a hole's end, at most. Where there is more, the hole is read. */
const countedBytesMax = 64 * 1024 * 1024;

/** Attempts, because a file that is written to has more data after its blocks were counted than before. */
const triesMax = 5;

/**
 * Finds an offset up to which a file has nothing but a hole from `from` on, which may be terabytes long, without reading it:
 * all blocks that the file system has allocated to the file are found elsewhere, in its data before the hole and, from its end
 * back, behind it. Returns `from` where that does not show, as where the file has more data than is worth counting. `scratch`
 * is overwritten. Throws Node's errors of reading.
 */
export async function findHoleEnd(handle: LogHandle, from: number, scratch: Uint8Array): Promise<number> {
  if (from > countedBytesMax) return from;
  for (let tries = 0; tries < triesMax; tries++) {
    const before = (await handle.allocation?.()) ?? null;
    if (before === null || before.allocatedBytes > countedBytesMax) return from;
    if (before.sizeBytes - from < 4 * countedBytesMax) return from;
    const dataFrom = await countData(handle, from, before, scratch);
    if (dataFrom === null) return from;
    const after = await handle.allocation?.();
    // Blocks that were allocated meanwhile may be anywhere.
    if (after?.allocatedBytes === before.allocatedBytes && after.sizeBytes >= before.sizeBytes)
      return dataFrom;
  }
  return from;
}

/**
 * Offset of the first data behind `from`, or the end of the file where there is none; null where not all allocated blocks were
 * found.
 */
async function countData(
  handle: LogHandle,
  from: number,
  { sizeBytes, allocatedBytes, blockBytes }: Allocation,
  scratch: Uint8Array,
): Promise<number | null> {
  const pieceBytes = scratch.length - (scratch.length % blockBytes);
  const zeros = new Uint8Array(blockBytes);
  let countedBytes = 0;
  let dataFrom = sizeBytes;
  const count = async (start: number, end: number): Promise<void> => {
    const read = await handle.read(scratch, 0, end - start, start);
    for (let at = Math.floor((read - 1) / blockBytes) * blockBytes; at >= 0; at -= blockBytes) {
      const block = scratch.subarray(at, Math.min(at + blockBytes, read));
      if (Buffer.compare(block, zeros.subarray(0, block.length)) === 0) continue;
      countedBytes += blockBytes;
      if (start >= from) dataFrom = start + at;
    }
  };
  for (let at = 0; at < from; at += pieceBytes) await count(at, Math.min(at + pieceBytes, from));
  // Data that lies as far before the end as there is data at all is not searched.
  const least = sizeBytes - 2 * allocatedBytes - pieceBytes;
  let start = Math.floor((sizeBytes - 1) / pieceBytes) * pieceBytes;
  for (; countedBytes < allocatedBytes && start >= least; start -= pieceBytes)
    await count(start, Math.min(start + pieceBytes, sizeBytes));
  return countedBytes === allocatedBytes ? dataFrom : null;
}

/**
 * Result of reading on in a file: its end was reached, the frame is full, its turn is over before the end of a long line was
 * found, or the file has other content than what was read before.
 */
export type Gathered = 'end' | 'full' | 'more' | 'replaced';

/** Bytes that are searched for the end of a long line in one turn: some tens of milliseconds, after which other files have theirs. */
const turnBytes = 64 * 1024 * 1024;

/** Options of reading on in a file. */
export interface GatherOptions {
  /**
   * Whether to take the rest after the last complete record: lines that may belong to an unfinished record, or a line
   * without a line end.
   */
  readonly takeRest: boolean;
  readonly nowMs: number;
}

const wholeLines = { reason: null, endsInLine: false, tail: null };

/** Reads the complete records after a file's position into a frame. Does not change the file's position, because nothing is stored yet. */
export class LineGathering {
  /** Position up to which the file is stored. */
  private readonly position: SourcePosition;
  private offset: number;
  private tail: Uint8Array;
  private endsInLine: boolean;
  private ends: RecordEnds;

  constructor(
    private readonly file: FollowedFile,
    private readonly handle: LogHandle,
    private readonly frame: LineFrame,
    private readonly scratch: Uint8Array,
    private readonly endsOf: RecordEndsOf,
    /**
     * Whether this is the only file that adds lines to the frame at the time: it is then read directly into the frame where
     * there is room.
     */
    private readonly isAlone: boolean,
  ) {
    this.position = this.content.position;
    this.offset = this.position.offset;
    this.tail = this.position.tail;
    this.endsInLine = this.position.endsInLine;
    this.ends = endsOf(this.position.head);
  }

  private get content(): FollowedContent {
    return this.file.followed!;
  }

  /**
   * Reads until the end of the file or until the frame is full. Throws Node's errors of reading, and `SourceError` for text
   * in an encoding that is not supported.
   */
  async run(options: GatherOptions): Promise<Gathered> {
    for (let wanted = this.nextPiece(); ;) {
      const content = await this.read(wanted, options.takeRest);
      if (content === null) return 'replaced';
      const atEnd = content.length < wanted;
      if (this.offset === 0 && this.isCutOff(content, atEnd)) return 'replaced';
      this.see(content, atEnd);
      if (this.offset === 0) this.ends = this.endsOf(content);
      if (this.offset === 0 && this.ends.encoding === undefined) requireEightBitText(this.file.path, content);
      const whole = this.ends.wholeTo(content, 0, content.length);
      if (whole > 0) {
        if (!this.take(content.subarray(0, whole))) return 'full';
        wanted = this.nextPiece();
      }
      const rest = content.length - whole;
      if (rest > lineBytesMax) {
        const taken = await this.takeLongLine(content.subarray(whole));
        if (taken !== 'line') return taken;
      } else if (atEnd) {
        return this.reachEnd(content.subarray(whole), options);
      } else if (whole === 0) {
        wanted = lineBytesMax + pieceBytes;
      }
    }
  }

  private nextPiece(): number {
    return Math.min(pieceBytes, this.frame.room + aheadBytes);
  }

  /**
   * Detects truncation of a file of which nothing is stored, so that there is no position to verify: all that was seen of it
   * must still be there.
   */
  private isCutOff(content: Uint8Array, atEnd: boolean): boolean {
    const { begun, seenBytes } = this.content;
    if (atEnd && content.length < seenBytes) return true;
    return Buffer.compare(begun, content.subarray(0, begun.length)) !== 0;
  }

  private see(content: Uint8Array, atEnd: boolean): void {
    const { file, offset, position } = this;
    const begun = offset === position.offset ? grownHead(position.head, content) : null;
    file.observe({ kind: 'read', reachedBytes: offset + content.length, isEnd: atEnd, begun });
  }

  /**
   * Reads up to `wanted` bytes from the offset on. Null where the bytes before the offset are not those that were read there
   * before. A short read that covers all that was ever seen of the file counts as its end, without a second read: with many
   * logs that each gain a few lines, that would double the cost. Later writes are announced or found by a survey. With
   * `toEnd`, it reads until a read returns nothing.
   */
  private async read(wanted: number, toEnd: boolean): Promise<Uint8Array | null> {
    const { tail } = this;
    const position = this.offset - tail.length;
    const length = tail.length + wanted;
    const target = this.targetOf(length);
    let filled = 0;
    while (filled < length) {
      const asked = length - filled;
      const read = await this.handle.read(target, filled, asked, position + filled);
      filled += read;
      if (read === 0 || (read < asked && !toEnd && position + filled >= this.content.seenBytes)) break;
    }
    if (filled < tail.length) return null;
    if (Buffer.compare(target.subarray(0, tail.length), tail) !== 0) return null;
    return target.subarray(tail.length, filled);
  }

  private targetOf(length: number): Uint8Array {
    const { frame, isAlone, scratch } = this;
    return isAlone && length <= frame.free.length ? frame.free : scratch;
  }

  /** Adds the complete records that fit into the frame; returns whether all did. */
  private take(lines: Uint8Array): boolean {
    const { room } = this.frame;
    const fitting = lines.length <= room ? lines.length : this.ends.wholeTo(lines, 0, room);
    if (fitting > 0) this.add(lines.subarray(0, fitting), fitting);
    return fitting === lines.length;
  }

  private add(
    content: Uint8Array,
    contentBytes: number,
    { reason, endsInLine, tail }: Pick<GatheredLines, 'reason' | 'endsInLine' | 'tail'> = wholeLines,
  ): void {
    const { file, offset, endsInLine: continuesLine } = this;
    const { encoding } = this.ends;
    const place = { file, offset, contentBytes, reason, endsInLine, continuesLine, tail };
    this.frame.add(content, { ...place, encoding });
    this.tail = tail ?? contentTail(this.tail, content);
    this.offset += contentBytes;
    this.endsInLine = endsInLine;
    file.observe({ kind: 'gathered' });
  }

  private reachEnd(rest: Uint8Array, { takeRest, nowMs }: GatherOptions): Gathered {
    const isAsBefore = rest.length === (this.content.rest?.bytes ?? 0);
    const endsInLine = rest.length === 0 || !endsLine(this.ends, rest, rest.length);
    this.file.observe({ kind: 'ended', restBytes: rest.length, endsInLine, nowMs });
    if (!isAsBefore || rest.length === 0 || !takeRest) return 'end';
    if (rest.length > this.frame.room) return 'full';
    this.add(rest, rest.length, { ...wholeLines, endsInLine });
    return 'end';
  }

  /** Takes what begins with more content than a line may have: NULs, the text before NULs, or an overlong line. */
  private async takeLongLine(content: Uint8Array): Promise<Gathered | 'line'> {
    if (this.frame.room < lineBytesMax) return 'full';
    const edge = this.ends.isWide === true ? 0 : holeEdge(content, content.length);
    if (edge === content.length) return this.passHole();
    if (edge === 0) return this.passLongLine(content);
    if (content[0] === 0) this.addHole(edge, content.slice(Math.max(0, edge - tailBytesMax), edge));
    else this.add(content.subarray(0, edge), edge);
    return 'line';
  }

  /** Searches the end of an overlong line, which begins with `content`. Once it is found the line is added, but only its beginning. */
  private async passLongLine(content: Uint8Array): Promise<Gathered | 'line'> {
    const beginning = content.slice(0, lineBytesMax);
    const { from, find } = this.ends.long(this.content.searchedTo - this.offset, content);
    const found = await this.search(this.offset + from, find);
    if (typeof found === 'string') return found;
    const behind = found + 1;
    const tail = await this.bytesBefore(behind);
    if (this.frame.room < lineBytesMax) return 'full';
    const reason = this.endsInLine ? continuationReason : longLineReason(found - this.offset);
    this.add(beginning, behind - this.offset, { reason, endsInLine: false, tail });
    return 'line';
  }

  /**
   * Searches the end of a run of NULs. At the end of a file they are left, because a program that allocates its log in advance
   * writes into them.
   */
  private async passHole(): Promise<Gathered | 'line'> {
    const { handle, scratch, offset } = this;
    const searched = Math.max(this.content.searchedTo, offset);
    const from = await findHoleEnd(handle, searched, scratch);
    const found = await this.search(from, (piece) => {
      const start = textStart(piece, 0, piece.length);
      return start < piece.length ? start : -1;
    });
    if (typeof found === 'string') return found;
    this.addHole(found - offset, await this.bytesBefore(found));
    return 'line';
  }

  /** Adds NULs from the offset on, which end with `tail`. The frame gets no more of them than the file is recognised by. */
  private addHole(nulBytes: number, tail: Uint8Array): void {
    this.endsInLine = false;
    const kept = new Uint8Array(Math.min(nulBytes, headBytesMax));
    this.add(kept, nulBytes, { ...wholeLines, tail });
  }

  /**
   * Searches the file from offset `from` on by `find`, which returns a position in a piece or -1. Returns the offset that was
   * found; `end` at the end of the file, and `more` after a turn, both of which keep how far was searched.
   */
  private async search(from: number, find: (piece: Uint8Array) => number): Promise<number | 'end' | 'more'> {
    const { handle, scratch, file } = this;
    for (let at = from; ;) {
      const read = at - from < turnBytes ? await handle.read(scratch, 0, pieceBytes, at) : -1;
      const found = read > 0 ? find(scratch.subarray(0, read)) : -1;
      if (found >= 0) return at + found;
      if (read > 0) {
        at += read;
        continue;
      }
      file.observe({ kind: 'searched', searchedTo: at });
      return read === 0 ? 'end' : 'more';
    }
  }

  private async bytesBefore(position: number): Promise<Uint8Array> {
    const tail = new Uint8Array(Math.min(tailBytesMax, position));
    await this.handle.read(tail, 0, tail.length, position - tail.length);
    return tail;
  }
}

/** Adds the next lines of a compressed file to a frame. Once its end is stored, the file is done. Throws `SourceError`. */
export async function gatherPacked(
  file: FollowedFile,
  { source, position }: PackedContent,
  frame: LineFrame,
): Promise<'end' | 'full' | 'more'> {
  let { offset, endsInLine } = position;
  for (;;) {
    const next = await source.peek();
    if (next === 'more') return next;
    if (next === null) {
      // The checkpoint gets the size of the compressed file, by which the file is recognised without being decompressed again.
      if (offset === 0) file.observe({ kind: 'empty' });
      else {
        const { packedBytes } = source;
        const end = { ...wholeLines, endsInLine, continuesLine: false, packedBytes };
        frame.add(new Uint8Array(0), { file, offset, contentBytes: 0, ...end });
      }
      return 'end';
    }
    if (next.end > frame.room) return 'full';
    const isLong = next.kind === 'long';
    const contentBytes = isLong ? next.lengthBytes + (next.endsInLine ? 0 : 1) : next.end;
    const reason = isLong ? rejectedLongLine(next, endsInLine).reasons[0]! : null;
    const continuesLine = endsInLine;
    ({ endsInLine } = next);
    frame.add(next.bytes.subarray(0, next.end), {
      file,
      offset,
      contentBytes,
      reason,
      endsInLine,
      continuesLine,
      encoding: source.encoding,
      tail: source.take(),
    });
    offset += contentBytes;
  }
}
