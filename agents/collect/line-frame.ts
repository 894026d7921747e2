import { copyBytes, leaseMemory, lineBytesMax, type MemoryLease, Semaphore } from '../../engine/index.js';
import { tailBytesMax } from '../sources/source-position.js';
import type { Encoding } from '../definition/definition.js';
import type { FollowedFile } from './logs/followed-file.js';

/** Lines of one file that wait to be decoded: bytes[start, end) of the frame. */
export interface GatheredLines {
  readonly file: FollowedFile;
  readonly start: number;
  readonly end: number;
  /** Offset of `start` in the file's content. */
  readonly offset: number;
  /** Number of content bytes that these lines stand for. For an overlong line it is more than the frame holds of it. */
  readonly contentBytes: number;
  /** Why the line is rejected without being decoded; null for lines to decode. */
  readonly reason: string | null;
  /** Whether the lines end inside a line, at the end of the content. */
  readonly endsInLine: boolean;
  /** Whether they begin inside a line whose first part is already stored. */
  readonly continuesLine: boolean;
  /** The last bytes of the content before the end of these lines, where the frame holds only part of them; else null. */
  readonly tail: Uint8Array | null;
  /** The encoding of the lines; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
  /** Set where these lines end the content of a compressed file: the size of that file. */
  readonly packedBytes?: number;
}

/** Bytes of lines in one commit. A decoder takes some tens of milliseconds for them. One line of the maximum length must fit. */
export const frameBytesMax = 4 * 1024 * 1024;

/** Bytes per read of a file; each read is a round trip to a thread of Node's pool. */
export const pieceBytes = 1024 * 1024;

/** Room for the tail by which the position is verified, and a piece or one line of the maximum length after it. */
const scratchBytes = tailBytesMax + lineBytesMax + pieceBytes;

/** Bytes that are read beyond the room left in a frame, to see whether there is more than fits. They are read again later. */
export const aheadBytes = 64 * 1024;

/** Upper bound of the bytes that a read directly into a frame may write beyond `frameBytesMax`. */
const slackBytes = tailBytesMax + aheadBytes;

/** Number of files that are read concurrently: Node's pool has four threads for it. With many files, each is read for a few lines only. */
const lanesMax = 4;

/**
 * The lines of several files that are gathered for one commit. Their buffer is shared with worker threads where such memory
 * is available: if an ordinary buffer were transferred to a thread and back, the garbage collector would account for it anew
 * each time, and run because of it.
 */
export class LineFrame {
  readonly lines: GatheredLines[] = [];
  /** Number of bytes used. */
  used = 0;
  /** Buffers that files are read into before their lines are added, one per concurrent read. */
  readonly scratches: readonly Uint8Array[];
  /** The buffer of the frame. Decoding may replace it, because ordinary memory is transferred to a thread and back. */
  bytes: Uint8Array;
  /** The shared memory that holds `bytes`; null where the buffer has to be transferred to threads. */
  readonly lent: MemoryLease | null;
  private readonly leases: MemoryLease[] = [];

  /** @param isLent whether to use memory that is shared with worker threads */
  constructor(private readonly isLent: boolean) {
    this.lent = this.lease(frameBytesMax + slackBytes);
    this.bytes = this.lent?.bytes ?? newBytes();
    // Scratch buffers have the same kind of memory as `bytes`: within one kind, data is copied as a block, between the two
    // kinds byte by byte.
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

  /** Number of bytes that may still be added. */
  get room(): number {
    return Math.max(0, frameBytesMax - this.used);
  }

  /**
   * The unused part of `bytes`. Content that is read to its beginning is not copied by `add`, provided that nothing is added
   * in between.
   */
  get free(): Uint8Array {
    return this.bytes.subarray(this.used);
  }

  /** Adds content. The caller must have checked that there is room. Content that already lies in `free` is not copied. */
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

  /** Removes all lines. */
  clear(): void {
    this.lines.length = 0;
    this.used = 0;
    // A thread that failed has not transferred the buffer back.
    if (this.bytes.length === 0) this.bytes = newBytes();
  }

  /** Frees the memory. The frame must not be used afterwards. */
  close(): void {
    for (const lease of this.leases) lease.free();
  }
}

function newBytes(): Uint8Array {
  return new Uint8Array(frameBytesMax + slackBytes);
}

/**
 * The frames that all collectors of a process share. Their number is bounded, which bounds the memory; a collector waits
 * until one is free.
 */
export class FramePool {
  private readonly spare: LineFrame[] = [];
  private readonly turns: Semaphore;

  /** @param isLent whether frames use memory that is shared with worker threads */
  constructor(
    framesMax: number,
    private readonly isLent: boolean,
  ) {
    this.turns = new Semaphore(framesMax);
  }

  /** Calls `use` with a frame, and returns the frame to the pool afterwards. */
  use<T>(use: (frame: LineFrame) => Promise<T>): Promise<T> {
    return this.turns.run(async () => {
      const frame = this.spare.pop() ?? new LineFrame(this.isLent);
      try {
        return await use(frame);
      } finally {
        this.spare.push(frame);
      }
    });
  }

  /** Frees the memory of the frames that are not in use. */
  close(): void {
    for (const frame of this.spare.splice(0)) frame.close();
  }
}
