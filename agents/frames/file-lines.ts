import {
  InOrder,
  largeFileBytesMin,
  type MemoryLease,
  workerFileBytesMin,
  type WorkerPool,
} from '../../engine/index.js';
import type { DecodeSettings } from './decode-task.js';
import { FrameBuffers } from './frame-buffers.js';
import { decodeLines, type DecodedBatch } from './lent-decoding.js';
import { rangesLeft, type LineRange } from './line-range.js';
import { rejectedLongLine, type RejectedPlaces } from './rejected-lines.js';
import { frameBytesDefault, framerBufferBytes, LineFramer, type Frame } from '../lines/line-framing.js';
import { compilePattern } from '../patterns/line-pattern.js';
import { recordEndsOf } from '../lines/record-ends.js';
import { lineFormatOf, type AgentDefinition } from '../definition/definition.js';
import type { PositionedSource } from '../sources/source-identity.js';
import { stopFlagOf, type SignalFlag } from '../decode/stop-flag.js';
import type { Written } from '../times/written.js';

/** A frame of a file on its way to a decoder. */
export interface FileFrame {
  /** The lines are bytes[0, end). The bytes move to a thread and come back, unless they are lent. */
  readonly bytes: Uint8Array;
  readonly lent: MemoryLease | null;
  readonly end: number;
  /** Content offset of `bytes[0]`. */
  readonly base: number;
}

/** Takes what becomes of a file's lines, in their order. */
export interface FrameConsumer {
  /** Takes lines that became no record; `lines.bytes` holds them. */
  reject(lines: FileFrame, rejected: RejectedPlaces): Promise<void>;
  /** Takes the records of a frame, one batch after another, the last one with `isLast`. The memory of the batch is the consumer's. */
  take(lines: FileFrame, decoded: DecodedBatch, isLast: boolean): Promise<void>;
  /** A frame has been read. */
  hasRead(): void;
}

export interface FileLinesOptions {
  readonly decode: DecodeSettings;
  /** Fields that the file's name gives. */
  readonly captures: ReadonlyMap<string, string>;
  /** Threads that decode lines; without, the caller's own does. */
  readonly workers: WorkerPool | undefined;
  readonly signal: AbortSignal | undefined;
  /** When the lines from a content offset on were written. */
  readonly writtenAt: (offset: number) => Written;
}

/** One job of a decoder, where there is enough for all threads: its trip to a thread and back then does not count. */
const largeFrameBytes = 4 * 1024 * 1024;

/**
 * A pattern with more instructions may take minutes for a megabyte of hostile lines: that is left to threads, so that this one answers
 * signals meanwhile.
 */
const instructionsMax = 1000;

function isLarge({ file }: AgentDefinition): boolean {
  return file?.regex !== undefined && compilePattern(file.regex).programSize() > instructionsMax;
}

/** Has the lines of a file decoded, from where its source stands to its end; on threads where that pays. */
export class FileLines {
  /** The content ends, as far as it was taken, inside a line. */
  endsInLine: boolean;
  private readonly framer: LineFramer;
  private readonly decoding: InOrder;
  private readonly workers: WorkerPool | null;
  private readonly buffers: FrameBuffers;
  private readonly stopping: SignalFlag;
  private readonly settings: DecodeSettings;
  private continuesLine: boolean;

  constructor(
    private readonly source: Pick<PositionedSource, 'reader' | 'content' | 'known' | 'part'>,
    private readonly options: FileLinesOptions,
    private readonly consumer: FrameConsumer,
  ) {
    const { known, content, reader } = source;
    const { workers, decode } = options;
    this.stopping = stopFlagOf(options.signal);
    this.settings = { ...decode, stop: this.stopping.stop };
    const small = reader.fileBytes < workerFileBytesMin && !isLarge(decode.definition);
    this.workers = small || workers === undefined || workers.threads === 0 ? null : workers;
    // What is unpacked comes in pieces, which are copied to a buffer: that is better done on the heap.
    const lent = this.workers !== null && content.nextInto !== undefined;
    const frameBytes = lent && reader.fileBytes >= largeFileBytesMin ? largeFrameBytes : frameBytesDefault;
    this.buffers = new FrameBuffers(framerBufferBytes(frameBytes), lent);
    this.framer = new LineFramer(
      content,
      content.offset,
      false,
      recordEndsOf(lineFormatOf(decode.definition)),
      frameBytes,
      this.buffers.take,
    );
    // Two frames a thread: one is decoded, and one waits while another's records are stored.
    this.decoding = new InOrder(2 * (this.workers?.threads ?? 0));
    this.endsInLine = known?.endsInLine ?? false;
    this.continuesLine = this.endsInLine;
  }

  /** Reads to the end. Whatever happens, nothing is lent any more when it returns. */
  async run(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      // What was stopped says so.
      this.options.signal?.throwIfAborted();
      throw error;
    } finally {
      this.stopping.release();
      await this.decoding.drop();
      this.buffers.close();
    }
  }

  private async read(): Promise<void> {
    const { reader, part } = this.source;
    for (let frame = await this.framer.next(); frame !== null; frame = await this.framer.next()) {
      this.options.signal?.throwIfAborted();
      // Somebody is writing this record just now; the next load takes it whole.
      if (frame.kind === 'tail' && part === undefined && (await reader.hasGrown())) break;
      await this.decodeFrame(frame);
      if (frame.kind === 'tail') this.framer.keepTail();
      this.endsInLine = frame.endsInLine;
      this.consumer.hasRead();
      if (frame.kind === 'tail') break;
    }
    await this.decoding.drain();
  }

  /** Has a frame decoded and taken; with threads, both while the next frames are read. */
  private async decodeFrame(frame: Frame): Promise<void> {
    const { captures, writtenAt } = this.options;
    const { continuesLine } = this;
    const lines = this.linesOf(frame);
    this.continuesLine = false;
    if (frame.kind === 'long') {
      await this.decoding.drain();
      await this.consumer.reject(lines, rejectedLongLine(frame, continuesLine));
      return;
    }
    const { end, base } = lines;
    const written = writtenAt(base);
    const ranges = [{ start: 0, end, captures, written, atBeginning: base === 0, continuesLine }];
    await this.decoding.add(
      () => this.decode(lines, ranges),
      (decoded) => this.take(lines, ranges, decoded),
      ({ batch }) => batch?.lease?.free(),
    );
  }

  private linesOf({ kind, bytes, end, offset: base }: Frame): FileFrame {
    if (this.workers === null || kind === 'long') return { bytes, lent: null, end, base };
    // What goes to a thread is gone from here; the framer still needs a tail, which it keeps or not.
    if (kind === 'tail') return { bytes: bytes.slice(0, end), lent: null, end, base };
    this.framer.leaveBuffer();
    return { bytes, lent: this.buffers.leaseOf(bytes), end, base };
  }

  private decode({ bytes, lent }: FileFrame, ranges: readonly LineRange[]): Promise<DecodedBatch> {
    return decodeLines(this.workers, { settings: this.settings, ranges }, bytes, lent);
  }

  /** Hands on what became of lines, and decodes those that one batch had no room for. */
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
