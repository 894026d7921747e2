import { resolve } from 'node:path';
import type { AgentStore } from '../engine/archive.js';
import { BatchBuilder } from '../engine/batch-builder.js';
import { LogstrataError } from '../engine/errors.js';
import type { LoadSession } from '../engine/storage/commit.js';
import { checkpointKey } from '../engine/storage/committed-values.js';
import type { Checkpoint } from '../engine/storage/manifest.js';
import type { AgentDefinition } from './definition.js';
import { fileCaptures } from './file-captures.js';
import { FrameDecoder, frameEnd, frameStart, RejectedLines } from './frame-decoder.js';
import { LineFramer, type Frame } from './line-framing.js';
import { shellWord, shownLine } from './line-text.js';
import type { LoadProgress } from './load-report.js';
import { createRecordDecoder } from './record-decoder.js';
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

class FileReading {
  private readonly framer: LineFramer;
  private readonly builder: BatchBuilder;
  private readonly decoder: FrameDecoder;
  private readonly rejected = new RejectedLines();
  private lastTimeMs: number | null;
  private endsInLine: boolean;
  private firstRejection: { readonly reason: string; readonly line: Uint8Array } | null = null;

  constructor(
    private readonly settings: ReadSettings,
    private readonly job: FileJob,
    private readonly source: PositionedSource,
  ) {
    const { definition, timezone, now } = settings;
    const { known, content, reader } = source;
    const captures = definition.file
      ? fileCaptures(definition.file.namePattern, job.path)
      : new Map<string, string>();
    this.framer = new LineFramer(content, content.offset);
    this.builder = new BatchBuilder(definition.schema);
    const decoder = createRecordDecoder(definition, { captures, timezone, now });
    this.decoder = new FrameDecoder(decoder, this.builder, known?.endsInLine ?? false);
    this.lastTimeMs = known?.lastTimeMs ?? null;
    this.endsInLine = known?.endsInLine ?? false;
    job.tally.fileBytes = reader.fileBytes;
    job.tally.continuedAt = known?.offset ?? null;
  }

  async run(): Promise<ReadFile> {
    const { tally, onProgress } = this.job;
    const { reader, content, head, known } = this.source;
    const startOffset = content.offset;
    for (let frame = await this.framer.next(); frame !== null; frame = await this.framer.next()) {
      this.settings.signal?.throwIfAborted();
      // Somebody is writing this line just now; the next load takes it whole.
      if (frame.kind === 'tail' && (await reader.hasGrown())) break;
      await this.decodeFrame(frame);
      if (frame.kind === 'tail') this.framer.keepTail();
      this.endsInLine = frame.kind === 'tail' || (frame.kind === 'long' && !frame.ended);
      tally.contentBytes = content.offset - startOffset;
      tally.fileBytesRead = content.bytesTaken;
      onProgress('reading', fractionRead(tally));
      if (frame.kind === 'tail') break;
    }
    await this.flush();
    await reader.requireUnchanged(head);
    tally.fileBytesRead = content.bytesTaken;
    tally.unreadableValues = this.decoder.counters.unreadableValues;
    tally.replacedBytes = this.decoder.counters.replacedBytes;
    if (tally.records + tally.rejected === 0) {
      return { outcome: known === null ? 'empty' : 'known', head, checkpoint: null };
    }
    if (known === null && tally.records === 0) throw this.refusal();
    return { outcome: 'new', head, checkpoint: this.checkpoint() };
  }

  private async decodeFrame(frame: Frame): Promise<void> {
    let at = frameStart(frame);
    const end = frameEnd(frame);
    while (at < end) {
      at = this.decoder.decode(frame, at, this.rejected);
      await this.keepRejected(frame);
      if (this.builder.full) await this.flush();
    }
  }

  private async keepRejected(frame: Frame): Promise<void> {
    const { rejected, job } = this;
    if (rejected.count === 0) return;
    const session = await job.session();
    const base = frame.offset - frameStart(frame);
    for (let i = 0; i < rejected.count; i++) {
      const reason = rejected.reasons[i]!;
      const line = frame.bytes.subarray(rejected.starts[i], rejected.ends[i]);
      this.firstRejection ??= { reason, line: line.slice() };
      await session.reject({ reason, file: job.path, offset: base + rejected.starts[i]!, line });
    }
    job.tally.rejected += rejected.count;
    rejected.clear();
  }

  private async flush(): Promise<void> {
    if (this.builder.rows === 0) return;
    const session = await this.job.session();
    const batch = this.builder.finish();
    this.lastTimeMs = await session.append(batch, this.job.source, this.lastTimeMs);
    this.job.tally.records += batch.length;
  }

  private checkpoint(): Checkpoint {
    const { source, job, endsInLine, lastTimeMs } = this;
    const identity = { ...headIdentity(source.head), contentHash: source.content.digest() };
    const { known } = source;
    return {
      ...identity,
      offset: source.content.offset,
      endsInLine,
      continues: known === null ? undefined : checkpointKey(known),
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
