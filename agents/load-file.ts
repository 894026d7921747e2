import { resolve } from 'node:path';
import type { AgentStore } from '../engine/archive.js';
import { LogstrataError } from '../engine/errors.js';
import { largeFileBytesMin, workerFileBytesMin } from '../engine/limits.js';
import type { MemoryLease } from '../engine/memory/memory-lease.js';
import type { LoadBatch, LoadSession } from '../engine/storage/commit.js';
import { checkpointKey } from '../engine/storage/committed-values.js';
import type { Checkpoint } from '../engine/storage/manifest.js';
import { InOrder } from '../engine/workers/in-order.js';
import type { WorkerPool } from '../engine/workers/worker-pool.js';
import { sha256 } from './content-hash.js';
import type { DecodedLines, DecodeSettings } from './decode-task.js';
import type { AgentDefinition } from './definition.js';
import { fileCaptures } from './file-captures.js';
import { FrameBuffers } from './frame-buffers.js';
import { frameEnd, frameEndsInLine, frameStart, RejectedLines } from './frame-decoder.js';
import { decodeLines, type LinesResult } from './lent-decoding.js';
import { frameBytesDefault, framerBufferBytes, LineFramer, type Frame } from './line-framing.js';
import { shellWord, shownLine } from './line-text.js';
import type { LoadProgress } from './load-report.js';
import { recordEndsOf } from './record-ends.js';
import { SourceError } from './source-error.js';
import { headIdentity, openAtKnownEnd, type PositionedSource } from './source-identity.js';

/** What every file of a load is read with. */
export interface ReadSettings {
  readonly store: AgentStore;
  readonly definition: AgentDefinition;
  /** Zone of times that carry none: an IANA name, `UTC`, `Local` or an offset. */
  readonly timezone: string;
  /** The clock, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
  /** Threads that decode lines; without, the caller's own does. */
  readonly workers?: WorkerPool | undefined;
}

/** Counts of one file while it is read, and what is known of it. */
export interface FileTally {
  records: number;
  rejected: number;
  contentBytes: number;
  fileBytes: number;
  fileBytesRead: number;
  continuedAt: number | null;
  unreadableValues: number;
  replacedBytes: number;
}

/** A tally of a file that nothing was read of yet. */
export function newTally(): FileTally {
  return {
    records: 0,
    rejected: 0,
    contentBytes: 0,
    fileBytes: 0,
    fileBytesRead: 0,
    continuedAt: null,
    unreadableValues: 0,
    replacedBytes: 0,
  };
}

export interface FileJob {
  readonly path: string;
  /** Tells the files of one unit apart. */
  readonly source: number;
  /** What may be known of it; empty to store it whatever is known. */
  readonly checkpoints: readonly Checkpoint[];
  /** The unit's session, begun when there is something to store. */
  readonly session: () => Promise<LoadSession>;
  readonly tally: FileTally;
  readonly onProgress: (phase: LoadProgress['phase'], fraction: number) => void;
}

/** A file that was read to its end. */
export interface ReadFile {
  readonly outcome: 'new' | 'known' | 'empty';
  /** What the file begins with. */
  readonly head: Uint8Array;
  /** How far it is stored once the unit is committed; null when there is nothing to store. */
  readonly checkpoint: Checkpoint | null;
}

/**
 * Reads one file into a unit of loading, from where its archived content ends. Nothing is committed here.
 *
 * Throws `SourceError` for what is wrong with this file: unreadable, damaged, changed meanwhile, or without one line that
 * becomes a record; other errors are the storage's.
 */
export async function readFileInto(settings: ReadSettings, job: FileJob): Promise<ReadFile> {
  const source = await openAtKnownEnd(job.path, job.checkpoints, (reader, content) => {
    settings.signal?.throwIfAborted();
    job.tally.fileBytes = reader.fileBytes;
    job.tally.fileBytesRead = content.bytesTaken;
    job.onProgress('checking', fractionRead(job.tally));
  });
  try {
    return await new FileReading(settings, job, source).run();
  } finally {
    await source.reader.close();
  }
}

/** Lines on their way to a decoder, and where they came from. */
interface Lines {
  /** Where they are; the bytes themselves move to a thread and come back, unless they are lent. */
  readonly bytes: Uint8Array;
  readonly lent: MemoryLease | null;
  readonly start: number;
  readonly end: number;
  /** Content offset of `bytes[0]`. */
  readonly base: number;
}

/** One job of a decoder, where there is enough for all threads: its trip to a thread and back then does not count. */
const largeFrameBytes = 4 * 1024 * 1024;

let sourcesRead = 0;

class FileReading {
  private readonly framer: LineFramer;
  private readonly decoding: InOrder;
  private readonly decode: DecodeSettings;
  private readonly workers: WorkerPool | null;
  private readonly buffers: FrameBuffers;
  private continuesLine: boolean;
  private lastTimeMs: number | null;
  private endsInLine: boolean;
  private firstRejection: { readonly reason: string; readonly line: Uint8Array } | null = null;

  constructor(
    private readonly settings: ReadSettings,
    private readonly job: FileJob,
    private readonly source: PositionedSource,
  ) {
    const { definition, timezone, workers } = settings;
    const { known, content, reader } = source;
    const captures = definition.file
      ? fileCaptures(definition.file.namePattern, job.path)
      : new Map<string, string>();
    this.decode = { key: sourcesRead++, definition, captures, timezone };
    const small = reader.fileBytes < workerFileBytesMin;
    this.workers = small || workers === undefined || workers.threads === 0 ? null : workers;
    // What is unpacked comes in pieces, which are copied to a buffer: that is better done on the heap.
    const lent = this.workers !== null && content.nextInto !== undefined;
    const frameBytes = lent && reader.fileBytes >= largeFileBytesMin ? largeFrameBytes : frameBytesDefault;
    this.buffers = new FrameBuffers(framerBufferBytes(frameBytes), lent);
    this.framer = new LineFramer(
      content,
      content.offset,
      false,
      recordEndsOf(definition.file),
      frameBytes,
      this.buffers.take,
    );
    // Two frames a thread: one is decoded, and one waits while another's records are stored.
    this.decoding = new InOrder(2 * (this.workers?.threads ?? 0));
    this.lastTimeMs = known?.lastTimeMs ?? null;
    this.endsInLine = known?.endsInLine ?? false;
    this.continuesLine = this.endsInLine;
    job.tally.fileBytes = reader.fileBytes;
    job.tally.continuedAt = known?.offset ?? null;
  }

  /** Reads to the end. Whatever happens, nothing is lent any more when it returns. */
  async run(): Promise<ReadFile> {
    try {
      return await this.read();
    } finally {
      await this.decoding.drop();
      this.buffers.close();
    }
  }

  private async read(): Promise<ReadFile> {
    const { tally, onProgress } = this.job;
    const { reader, content, head, known } = this.source;
    const startOffset = content.offset;
    for (let frame = await this.framer.next(); frame !== null; frame = await this.framer.next()) {
      this.settings.signal?.throwIfAborted();
      // Somebody is writing this record just now; the next load takes it whole.
      if (frame.kind === 'tail' && (await reader.hasGrown())) break;
      await this.decodeFrame(frame);
      if (frame.kind === 'tail') this.framer.keepTail();
      this.endsInLine = frameEndsInLine(frame);
      tally.contentBytes = content.offset - startOffset;
      tally.fileBytesRead = content.bytesTaken;
      onProgress('reading', fractionRead(tally));
      if (frame.kind === 'tail') break;
    }
    await this.decoding.drain();
    await reader.requireUnchanged(head);
    tally.fileBytesRead = content.bytesTaken;
    if (tally.records + tally.rejected === 0) {
      return { outcome: known === null ? 'empty' : 'known', head, checkpoint: null };
    }
    if (known === null && tally.records === 0) throw this.refusal();
    return { outcome: 'new', head, checkpoint: this.checkpoint() };
  }

  /** Has a frame decoded and its records stored; with threads, both while the next frames are read. */
  private async decodeFrame(frame: Frame): Promise<void> {
    const lines = this.linesOf(frame);
    const rejected = new RejectedLines();
    let { start } = lines;
    if (frame.kind === 'long') start = rejected.addLong(frame, this.continuesLine);
    else if (this.continuesLine) start = rejected.addRest(lines.bytes, lines.start, lines.end);
    this.continuesLine = false;
    if (rejected.count > 0) {
      await this.decoding.drain();
      await this.keepRejected(lines, rejected);
    }
    if (start === lines.end) return;
    await this.decoding.add(
      () => this.decodeLines({ ...lines, start }),
      (decoded) => this.store(lines, decoded),
      ({ batch }) => batch?.lease?.free(),
    );
  }

  private linesOf(frame: Frame): Lines {
    const start = frameStart(frame);
    const end = frameEnd(frame);
    const place = { start, end, base: frame.offset - start };
    if (this.workers === null || frame.kind === 'long') return { bytes: frame.bytes, lent: null, ...place };
    // What goes to a thread is gone from here; the framer still needs a tail, which it keeps or not.
    if (frame.kind === 'tail') return { bytes: frame.bytes.slice(0, end), lent: null, ...place };
    this.framer.leaveBuffer();
    return { bytes: frame.bytes, lent: this.buffers.leaseOf(frame.bytes), ...place };
  }

  private decodeLines({ bytes, lent, start, end }: Lines): Promise<LinesResult> {
    const job = { settings: this.decode, nowMs: this.settings.now(), start, end };
    return decodeLines(this.workers, job, bytes, lent);
  }

  /** Stores what became of lines, and of those that one batch had no room for. */
  private async store(lines: Lines, first: LinesResult): Promise<void> {
    const { tally } = this.job;
    for (let decoded = first; ;) {
      tally.unreadableValues += decoded.unreadableValues;
      tally.replacedBytes += decoded.replacedBytes;
      const { bytes, reached, batch } = decoded;
      try {
        this.settings.signal?.throwIfAborted();
        await this.keepRejected({ ...lines, bytes }, decoded.rejected);
      } catch (error) {
        batch?.lease?.free();
        throw error;
      }
      if (batch !== null) await this.append(batch);
      if (reached === lines.end) {
        if (this.workers !== null) this.buffers.giveBack(bytes);
        return;
      }
      decoded = await this.decodeLines({ ...lines, bytes, start: reached });
    }
  }

  private async keepRejected({ bytes, base }: Lines, rejected: DecodedLines['rejected']): Promise<void> {
    const { reasons, starts, ends } = rejected;
    const { job } = this;
    if (reasons.length === 0) return;
    const session = await job.session();
    for (let i = 0; i < reasons.length; i++) {
      const reason = reasons[i]!;
      const line = bytes.subarray(starts[i], ends[i]);
      this.firstRejection ??= { reason, line: line.slice() };
      await session.reject({ reason, file: job.path, offset: base + starts[i]!, line });
    }
    job.tally.rejected += reasons.length;
  }

  private async append(batch: LoadBatch): Promise<void> {
    const session = await this.job.session();
    this.lastTimeMs = await session.append(batch, this.job.source, this.lastTimeMs);
    this.job.tally.records += batch.length;
  }

  private checkpoint(): Checkpoint {
    const { source, job, endsInLine, lastTimeMs } = this;
    const identity = { ...headIdentity(source.head), contentHash: source.content.digest() };
    const { known, reader } = source;
    // What is followed under another file belongs to that one: two files may have the same content so far.
    const others = known !== null && known.contentHash === null && known.inode !== reader.inode;
    return {
      ...identity,
      tailHash: sha256(source.content.tail()),
      ...(reader.compression === 'none' ? { inode: reader.inode } : {}),
      offset: source.content.offset,
      endsInLine,
      continues: known === null || others ? undefined : checkpointKey(known),
      path: resolve(job.path),
      lastTimeMs,
      records: (known?.records ?? 0) + job.tally.records,
      rejected: (known?.rejected ?? 0) + job.tally.rejected,
    };
  }

  /** A file of which nothing can be used is most likely another agent's: it is not stored as rejected lines. */
  private refusal(): SourceError {
    const { path, tally } = this.job;
    const { name } = this.settings.definition;
    const { reason, line } = this.firstRejection!;
    const lines =
      tally.rejected === 1 ? 'Its one line did not become' : `None of its ${tally.rejected} lines became`;
    const word = shellWord(line) ?? `"$(${this.source.reader.unpackCommand} | head -n 1)"`;
    return new SourceError(
      'invalid',
      `${path} was not stored. ${lines} a record of agent "${name}"; the first one: ${reason}. ` +
        `It reads: ${shownLine(line)}\nTry: logstrata check ${name} --line ${word}`,
      { path },
    );
  }
}

function fractionRead({ fileBytesRead, fileBytes }: FileTally): number {
  return fileBytes === 0 ? 1 : Math.min(1, fileBytesRead / fileBytes);
}

/** An abort of the caller's signal, as the engine's own kind of error. */
export function asCancellation(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted !== true || error !== signal.reason) return error;
  return new LogstrataError('cancelled', 'the load was cancelled', { cause: error });
}
