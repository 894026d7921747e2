import {
  dropInOrder,
  finishInOrder,
  leaseMemory,
  type MemoryLease,
  largeFileBytesMin,
  type Pending,
  startInOrder,
  workerFileBytesMin,
  type WorkerPool,
} from '../../engine/index.js';
import { type DecodeSettings, rangesLeft, type LineRange } from './decode-task.js';
import { decodeLines, type DecodedBatch } from './lent-decoding.js';
import { rejectedLongLine, type RejectedPlaces } from './rejected-lines.js';
import { frameBytesDefault, framerBufferBytes, LineFramer, type Frame } from './line-framing.js';
import { recordEndsOf } from './record-ends.js';
import { compilePattern } from '../../engine/patterns/compile-pattern.js';
import type { AgentDefinition, Encoding } from '../definition/definition.js';
import { reopenAt, type SourceCursor } from '../sources/source-cursor.js';
import { type Reading, readingOf } from '../sources/source-position.js';
import { stopFlagOf, type SignalFlag } from './stop-flag.js';
import { headersOf, readingBehind, type TableHeaders } from './table-headers.js';
import type { Written } from '../../engine/times/timestamp.js';

/** Allocates and reuses the buffers that lines are read into. */
class FrameBuffers {
  private readonly spare: Uint8Array[] = [];
  private readonly leases = new Map<Uint8Array, MemoryLease>();

  /** @param lent whether to use memory that is shared with threads, while there is some */
  constructor(
    private readonly sizeBytes: number,
    private readonly lent: boolean,
  ) {}

  /** Returns a buffer of `sizeBytes` bytes. */
  readonly take = (): Uint8Array => {
    const spare = this.spare.pop();
    if (spare !== undefined) return spare;
    const lease = this.lent ? leaseMemory(this.sizeBytes) : null;
    if (lease === null) return new Uint8Array(this.sizeBytes);
    const { bytes } = lease;
    this.leases.set(bytes, lease);
    return bytes;
  };

  /** The shared memory of a buffer; null where the buffer has to be transferred to threads. */
  leaseOf(bytes: Uint8Array): MemoryLease | null {
    return this.leases.get(bytes) ?? null;
  }

  /** Makes a buffer available to `take` again. Buffers of another size, such as detached ones, are dropped. */
  giveBack(bytes: Uint8Array): void {
    if (bytes.length === this.sizeBytes) this.spare.push(bytes);
  }

  /** Frees the shared memory. No thread may still use it. */
  close(): void {
    for (const lease of this.leases.values()) lease.free();
    this.leases.clear();
  }
}

/** A frame of a file's lines to be decoded. */
export interface FileFrame {
  /** The lines are bytes[0, end). The buffer is transferred to a thread and back, unless it is shared memory (`lent`). */
  readonly bytes: Uint8Array;
  readonly lent: MemoryLease | null;
  readonly end: number;
  /** Offset of `bytes[0]` in the file's content. */
  readonly base: number;
}

/** Receives the results of a file's lines, in order. */
export interface FrameConsumer {
  /** Receives lines that became no record; `lines.bytes` holds them. */
  reject(lines: FileFrame, rejected: RejectedPlaces): Promise<void>;
  /**
   * Receives the records of a frame, one batch after another; `isLast` is set for the frame's last batch. The consumer owns
   * the batch's memory.
   */
  take(lines: FileFrame, decoded: DecodedBatch, isLast: boolean): Promise<void>;
  /** Called after each frame that was read. */
  hasRead(): void;
}

/** Options of decoding a file's lines. */
export interface FileLinesOptions {
  readonly decode: DecodeSettings;
  /** Field values from the file's name. */
  readonly captures: ReadonlyMap<string, string>;
  /** Threads that decode lines; undefined to decode on the caller's thread. */
  readonly workers: WorkerPool | undefined;
  readonly signal: AbortSignal | undefined;
  /** When the lines from a content offset on were written. */
  readonly writtenAt: (offset: number) => Written;
}

/** Frame size where there is enough work for all threads: the round trip to a thread then does not matter. */
const largeFrameBytes = 4 * 1024 * 1024;

/**
 * A pattern with more instructions may take minutes for a megabyte of hostile lines. Such lines are always decoded on worker
 * threads, so that this thread stays responsive to signals.
 */
const instructionsMax = 1000;

function isLarge({ file }: AgentDefinition): boolean {
  return file?.regex !== undefined && compilePattern(file.regex).programSize() > instructionsMax;
}

/** Decodes the lines of a file from the source's position to its end; on worker threads where that pays off. */
export class FileLines {
  /** Whether the content that was taken ends inside a line. */
  endsInLine: boolean;
  private readonly framer: LineFramer;
  private readonly decoding: Pending[] = [];
  private readonly depth: number;
  private readonly workers: WorkerPool | null;
  private readonly buffers: FrameBuffers;
  private readonly stopping: SignalFlag;
  private readonly settings: DecodeSettings;
  private continuesLine: boolean;
  /** What must be known to read on behind what was read; undefined where nothing must be. */
  reading: Reading | undefined;
  private readonly headers: TableHeaders | null;
  private readonly encoding: Encoding | undefined;

  constructor(
    private readonly source: SourceCursor,
    private readonly options: FileLinesOptions,
    private readonly consumer: FrameConsumer,
  ) {
    const { workers, decode } = options;
    const { size } = source.file;
    this.stopping = stopFlagOf(options.signal);
    this.settings = { ...decode, stop: this.stopping.stop };
    const small = size < workerFileBytesMin && !isLarge(decode.definition);
    this.workers = small || workers === undefined || workers.threads === 0 ? null : workers;
    // Decompressed content arrives in pieces that are copied into a buffer; ordinary memory is better for that.
    const lent = this.workers !== null && source.nextInto !== undefined;
    const frameBytes = lent && size >= largeFileBytesMin ? largeFrameBytes : frameBytesDefault;
    this.buffers = new FrameBuffers(framerBufferBytes(frameBytes), lent);
    const ends = recordEndsOf(decode.definition)(source.head);
    this.encoding = ends.encoding;
    this.framer = new LineFramer(source, source.offset, false, ends, frameBytes, this.buffers.take);
    // Two frames per thread: one is being decoded while another waits for the records before it to be stored.
    this.depth = 2 * (this.workers?.threads ?? 0);
    this.endsInLine = source.known?.endsInLine ?? false;
    this.continuesLine = this.endsInLine;
    this.headers = headersOf(decode.definition);
  }

  /** Reads to the end. When it returns or throws, all shared memory has been released. */
  async run(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      // After an abort, throw the abort reason rather than its consequence.
      this.options.signal?.throwIfAborted();
      throw error;
    } finally {
      this.stopping.release();
      await dropInOrder(this.decoding);
      this.buffers.close();
    }
  }

  private async read(): Promise<void> {
    const { source } = this;
    this.reading = await this.readingThere();
    for (let frame = await this.framer.next(); frame !== null; frame = await this.framer.next()) {
      this.options.signal?.throwIfAborted();
      // This record is being written just now; the next load takes it as a whole.
      if (frame.kind === 'tail' && source.part === undefined && (await source.hasGrown())) break;
      await this.decodeFrame(frame);
      if (frame.kind === 'tail') this.framer.keepTail();
      this.endsInLine = frame.endsInLine;
      this.consumer.hasRead();
      if (frame.kind === 'tail') break;
    }
    await finishInOrder(this.decoding);
  }

  /** What must be known at the source's position. Where the checkpoint does not say, the content before it is read once more. */
  private async readingThere(): Promise<Reading | undefined> {
    const { source, headers, options } = this;
    const { known, offset } = source;
    if (headers === null || offset === 0) return undefined;
    const stored = known === null ? undefined : readingOf(known);
    if (stored !== undefined) return stored;
    const again = await reopenAt(source, null, () => options.signal?.throwIfAborted());
    try {
      again.endAt(offset);
      return (await readingBehind(options.decode.definition, again, again.head)).reading;
    } finally {
      await again.close();
    }
  }

  /** Has a frame decoded, and passes the result to the consumer; with threads, the next frames are read meanwhile. */
  private async decodeFrame(frame: Frame): Promise<void> {
    const { captures, writtenAt } = this.options;
    const { continuesLine, reading, encoding } = this;
    // Before its bytes go to a thread: the next frame is decoded at the same time.
    if (this.headers !== null && frame.kind !== 'long')
      this.reading = this.headers.behind(frame.bytes, {
        start: 0,
        end: frame.end,
        reading,
        encoding,
        continuesLine,
      });
    const lines = this.linesOf(frame);
    this.continuesLine = false;
    if (frame.kind === 'long') {
      await finishInOrder(this.decoding);
      await this.consumer.reject(lines, rejectedLongLine(frame, continuesLine));
      return;
    }
    const { end, base } = lines;
    const written = writtenAt(base);
    const ranges = [{ start: 0, end, captures, written, continuesLine, reading, encoding }];
    await startInOrder(
      this.decoding,
      this.depth,
      () => this.decode(lines, ranges),
      (decoded) => this.take(lines, ranges, decoded),
      ({ batch }) => batch?.lease?.free(),
    );
  }

  private linesOf({ kind, bytes, end, offset: base }: Frame): FileFrame {
    if (this.workers === null || kind === 'long') return { bytes, lent: null, end, base };
    // A buffer that goes to a thread is gone from here, but the framer still needs a tail, so the thread gets a copy.
    if (kind === 'tail') return { bytes: bytes.slice(0, end), lent: null, end, base };
    this.framer.leaveBuffer();
    return { bytes, lent: this.buffers.leaseOf(bytes), end, base };
  }

  private decode({ bytes, lent }: FileFrame, ranges: readonly LineRange[]): Promise<DecodedBatch> {
    return decodeLines(this.workers, { settings: this.settings, ranges }, bytes, lent);
  }

  /** Passes the results of lines to the consumer, and decodes the lines that did not fit into the batch. */
  private async take(lines: FileFrame, ranges: readonly LineRange[], first: DecodedBatch): Promise<void> {
    let left = ranges;
    for (let decoded = first; ;) {
      const { bytes, batch, years } = decoded;
      const now = { ...lines, bytes };
      try {
        this.options.signal?.throwIfAborted();
        for (const { rejected } of decoded.ranges)
          if (rejected.reasons.length > 0) await this.consumer.reject(now, rejected);
      } catch (error) {
        batch?.lease?.free();
        throw error;
      }
      left = rangesLeft(left, decoded.ranges, years);
      await this.consumer.take(lines, decoded, left.length === 0);
      if (left.length === 0) {
        if (this.workers !== null) this.buffers.giveBack(bytes);
        return;
      }
      decoded = await this.decode(now, left);
    }
  }
}
