import { copyBytes, leaseMemory, lineBytesMax, type MemoryLease } from '../../engine/index.js';
import { tailBytesMax } from '../sources/content-reader.js';
import type { FollowedFile } from './logs/followed-file.js';

/** Lines of one file on their way to a decoder: bytes[start, end) of the frame. */
export interface GatheredLines {
  readonly file: FollowedFile;
  readonly start: number;
  readonly end: number;
  /** Content offset of `start`. */
  readonly offset: number;
  /** Content bytes that they stand for: more than are kept of an overlong line. */
  readonly contentBytes: number;
  /** Why the line is rejected as it is; null for lines to decode. */
  readonly reason: string | null;
  /** The content ends here, inside a line. */
  readonly endsInLine: boolean;
  /** They begin inside a line whose beginning is stored. */
  readonly continuesLine: boolean;
  /** The content's last bytes behind them, where more was passed over than is kept; else null. */
  readonly tail: Uint8Array | null;
  /** Length of the compressed file that ends behind them; absent where it goes on, or is none. */
  readonly packedBytes?: number;
}

/** Bytes of lines in one commit: what a decoder takes some tens of milliseconds for, and holds a longest line. */
export const frameBytesMax = 4 * 1024 * 1024;

/** One read of a file: each is a trip to another thread and back. */
export const pieceBytes = 1024 * 1024;

/** Room for a piece, or a longest line, behind the bytes by which the place is recognised. */
const scratchBytes = tailBytesMax + lineBytesMax + pieceBytes;

/** Read beyond the room that a frame has left: whether there is more than fits. What does not fit is read again. */
export const aheadBytes = 64 * 1024;

/** What is read straight into a frame ends behind its room by this much at most. */
const slackBytes = tailBytesMax + aheadBytes;

/** Files that are read at the same time: Node has four threads for that, and many files are each read for a few lines. */
const lanesMax = 4;

/**
 * Lines of several files, gathered for one commit. Threads see them where they lie, as long as there is such memory: were they moved
 * to a thread and back, the garbage collector would count them anew each time, and run for them.
 */
export class LineFrame {
  readonly lines: GatheredLines[] = [];
  used = 0;
  /** Where files are read to before their lines are taken, one for each that is read at the same time. */
  readonly scratches: readonly Uint8Array[];
  bytes: Uint8Array;
  /** Where threads see `bytes`; null for bytes that have to move to them. */
  readonly lent: MemoryLease | null;
  private readonly leases: MemoryLease[] = [];

  /** @param isLent whether threads are to see the lines where they lie */
  constructor(private readonly isLent: boolean) {
    this.lent = this.lease(frameBytesMax + slackBytes);
    this.bytes = this.lent?.bytes ?? newBytes();
    // Memory of one kind is copied within as a whole, between two kinds byte by byte.
    this.scratches = Array.from(
      { length: lanesMax },
      () => this.lease(scratchBytes)?.bytes ?? new Uint8Array(scratchBytes),
    );
  }

  private lease(sizeBytes: number): MemoryLease | null {
    const lease = this.isLent ? leaseMemory(sizeBytes) : null;
    if (lease !== null) this.leases.push(lease);
    return lease;
  }

  get room(): number {
    return Math.max(0, frameBytesMax - this.used);
  }

  /** Where the next content may be read to that `add` then leaves where it is: nothing else may be added meanwhile. */
  get free(): Uint8Array {
    return this.bytes.subarray(this.used);
  }

  /** Adds content; the caller has seen that there is room. What lies in `free` stays there. */
  add(content: Uint8Array, lines: Omit<GatheredLines, 'start' | 'end'>): void {
    const isFree = this.isFree(content);
    const start = isFree ? content.byteOffset - this.bytes.byteOffset : this.used;
    if (!isFree) copyBytes(content, 0, content.length, this.bytes, start);
    const end = start + content.length;
    this.lines.push({ ...lines, start, end });
    this.used = end;
  }

  private isFree({ buffer, byteOffset }: Uint8Array): boolean {
    const { bytes, used } = this;
    const end = bytes.byteOffset + bytes.length;
    return buffer === bytes.buffer && byteOffset >= bytes.byteOffset + used && byteOffset < end;
  }

  clear(): void {
    this.lines.length = 0;
    this.used = 0;
    // A thread that failed has not given them back.
    if (this.bytes.length === 0) this.bytes = newBytes();
  }

  /** Gives its memory back. Nobody may use it any more. */
  close(): void {
    for (const lease of this.leases) lease.free();
  }
}

function newBytes(): Uint8Array {
  return new Uint8Array(frameBytesMax + slackBytes);
}
