import { resolve } from 'node:path';
import type { AgentStore } from '../engine/archive.js';
import { LogstrataError } from '../engine/errors.js';
import type { LoadBatch, LoadSession } from '../engine/storage/commit.js';
import { checkpointKey } from '../engine/storage/committed-values.js';
import type { Checkpoint } from '../engine/storage/manifest.js';
import type { WorkerPool } from '../engine/workers/worker-pool.js';
import { sha256 } from './content-hash.js';
import { decodeSettings, type DecodedLines } from './decode-task.js';
import type { AgentDefinition } from './definition.js';
import { fileCaptures } from './file-captures.js';
import { FileLines, type Lines, type LinesConsumer } from './file-lines.js';
import { fileWritten } from './file-years.js';
import type { LinesResult } from './lent-decoding.js';
import { shellWord, shownLine } from './line-text.js';
import type { LoadProgress } from './load-report.js';
import { SourceError } from './source-error.js';
import { headIdentity, openAtKnownEnd, type PositionedSource } from './source-identity.js';
import { hasUndatedTimes } from './timestamp.js';
import { latestOf, type Written } from './written.js';

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

class FileReading implements LinesConsumer {
  private lastTimeMs: number | null;
  private endsInLine = false;
  private firstRejection: { readonly reason: string; readonly line: Uint8Array } | null = null;
  private writtenAt: (offset: number) => Written = () => ({ byMs: 0 });

  constructor(
    private readonly settings: ReadSettings,
    private readonly job: FileJob,
    private readonly source: PositionedSource,
  ) {
    const { known, reader } = source;
    this.lastTimeMs = known?.lastTimeMs ?? null;
    job.tally.fileBytes = reader.fileBytes;
    job.tally.continuedAt = known?.offset ?? null;
  }

  async run(): Promise<ReadFile> {
    const { tally } = this.job;
    const { reader, content, head, known } = this.source;
    await this.readLines();
    await reader.requireUnchanged(head);
    tally.fileBytesRead = content.bytesTaken;
    if (tally.records + tally.rejected === 0) {
      return { outcome: known === null ? 'empty' : 'known', head, checkpoint: null };
    }
    if (known === null && tally.records === 0) throw this.refusal();
    return { outcome: 'new', head, checkpoint: this.checkpoint() };
  }

  private async readLines(): Promise<void> {
    const { source, job } = this;
    const { definition, timezone, workers, signal } = this.settings;
    const captures = definition.file
      ? fileCaptures(definition.file.namePattern, job.path)
      : new Map<string, string>();
    const decode = decodeSettings(definition, captures, timezone);
    const onRead = (fileBytesRead: number): void => this.progress('checking', fileBytesRead);
    const writtenAt = await fileWritten(source, decode, { workers, signal, onRead });
    this.writtenAt = writtenAt;
    const lines = new FileLines(source, { decode, workers, signal, writtenAt }, this);
    await lines.run();
    this.endsInLine = lines.endsInLine;
  }

  private progress(phase: LoadProgress['phase'], fileBytesRead: number): void {
    const { tally, onProgress } = this.job;
    tally.fileBytesRead = fileBytesRead;
    onProgress(phase, fractionRead(tally));
  }

  hasRead(): void {
    const { content, known } = this.source;
    this.job.tally.contentBytes = content.offset - (known?.offset ?? 0);
    this.progress('reading', content.bytesTaken);
  }

  async reject({ bytes, base }: Lines, { reasons, starts, ends }: DecodedLines['rejected']): Promise<void> {
    const { job, settings } = this;
    const session = await job.session();
    const isDated = !hasUndatedTimes(settings.definition);
    for (let i = 0; i < reasons.length; i++) {
      const reason = reasons[i]!;
      const line = bytes.subarray(starts[i], ends[i]);
      this.firstRejection ??= { reason, line: line.slice() };
      const offset = base + starts[i]!;
      const rejected = { reason, file: job.path, offset, line };
      await session.reject(isDated ? rejected : { ...rejected, writtenMs: latestOf(this.writtenAt(offset)) });
    }
    job.tally.rejected += reasons.length;
  }

  async take(_lines: Lines, { batch, unreadableValues, replacedBytes }: LinesResult): Promise<void> {
    const { tally } = this.job;
    tally.unreadableValues += unreadableValues;
    tally.replacedBytes += replacedBytes;
    if (batch !== null) await this.append(batch);
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
