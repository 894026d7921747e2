import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import {
  type AppendResult,
  BatchBuilder,
  type CommitExtras,
  fillTimes,
  isLogstrataError,
  LogstrataError,
  orDeadline,
  type RecordBatch,
  type RejectedLine,
  rowGroupRowsMax,
} from '../../engine/index.js';
import { StreamSource, type ByteSource, SourceError } from '../sources/byte-source.js';
import { decodeRange } from '../decode/decode-task.js';
import { rejectedLongLine, toRejectedLines, type RejectedPlaces } from '../decode/rejected-lines.js';
import { LineFramer, type Frame } from '../decode/line-framing.js';
import { recordEndsOf } from '../decode/record-ends.js';
import { type LineCounts, LineTally, noRecordError } from './load-report.js';
import type { ReadSettings } from './load-file.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import { SourceCursor } from '../sources/source-cursor.js';
import type { RecordDecoder } from '../decode/line-decoder.js';
import type { Reading } from '../sources/source-position.js';
import type { Written } from '../../engine/times/timestamp.js';

/** Options of loading a stream. */
export interface LoadStreamOptions extends ReadSettings {
  /** Standard input. It is destroyed at the end. */
  readonly input: Readable;
  /** Longest time, in milliseconds, that a line waits for its commit. */
  readonly commitMs?: number | undefined;
  /** Called after each commit, and after lines were read. */
  readonly onProgress?: ((progress: StreamProgress) => void) | undefined;
}

/** Progress of loading a stream. The records are those that are visible and durable; the content is what was read. */
export interface StreamProgress extends Pick<
  LineCounts,
  'records' | 'rejected' | 'notKept' | 'contentBytes'
> {
  /** Records that were read and wait for their commit. */
  readonly waiting: number;
  readonly commits: number;
}

/** Report on a stream. */
export interface StreamSummary extends LineCounts {
  readonly commits: number;
  readonly seconds: number;
  /** Why reading ended early. What had been committed by then is safe, and counted in `records`. */
  readonly error: LogstrataError | null;
  readonly exitCode: 0 | 1;
}

/** Default of `commitMs`. */
const commitMsDefault = 10_000;

/** For this long, in milliseconds, lines are decoded without a pause. */
const turnMs = 50;

/** Limit on the bytes of rejected lines that wait in memory for their commit. */
const waitingRejectedBytesMax = 8 * 1024 * 1024;

const noCaptures: ReadonlyMap<string, string> = new Map();

/** Name of standard input in messages and in rejected lines. */
export const streamName = '-';

/**
 * Loads a stream. What was read is committed every `commitMs`, or earlier when it fills a row group. There are no
 * checkpoints, since a stream can't be read twice. Reading pauses during a commit. At the end of the stream, or when the
 * signal aborts, the rest is committed; a last line without a line end counts as a line.
 *
 * Expected failures are in the summary, never thrown.
 */
export async function loadStream(options: LoadStreamOptions): Promise<StreamSummary> {
  const startedMs = performance.now();
  const raw = new StreamSource(streamName, options.input);
  let source: ByteSource = raw;
  const stop = (): void => source.stop();
  options.signal?.addEventListener('abort', stop);
  if (options.signal?.aborted === true) stop();
  let load: StreamLoad | undefined;
  let error: LogstrataError | null = null;
  try {
    const cursor = await SourceCursor.of(raw);
    source = cursor;
    if (options.signal?.aborted === true) stop();
    load = new StreamLoad(options, source, await cursor.peek(2));
    await load.run();
  } catch (failure) {
    if (!isLogstrataError(failure)) throw failure;
    error = failure;
  } finally {
    options.signal?.removeEventListener('abort', stop);
    await source.close();
  }
  const { commits, ...lines } = load?.counts() ?? { commits: 0, ...new LineTally().counts() };
  const seconds = (performance.now() - startedMs) / 1000;
  return { ...lines, commits, seconds, error, exitCode: error === null ? 0 : 1 };
}

class StreamLoad {
  private readonly framer: LineFramer;
  private readonly builder: BatchBuilder;
  private readonly decoder: RecordDecoder;
  private waitingRejected: RejectedLine[] = [];
  private waitingRejectedBytes = 0;
  private waitingSinceMs: number | null = null;
  private lastTimeMs: number | null = null;
  private readonly committed = new LineTally();
  private commits = 0;
  private decodedTo = 0;
  private reading: Reading | undefined;

  constructor(
    private readonly options: LoadStreamOptions,
    source: ByteSource,
    head: Uint8Array,
  ) {
    const { definition, timezone, now } = options;
    const ends = recordEndsOf(definition)(head);
    // A stream can't be read twice, so it need not be recognised by what was taken of it.
    const { path } = source;
    this.framer = new LineFramer({ path, next: () => source.next() }, 0, true, ends);
    this.builder = new BatchBuilder(definition.schema);
    const origin = { captures: noCaptures, written: { byMs: now() } };
    const { encoding } = ends;
    this.decoder = createRecordDecoder(definition, { ...origin, timezone, turnMs, encoding });
  }

  /** All counts. Call it once, at the end. */
  counts(): LineCounts & { readonly commits: number } {
    const { counters } = this.decoder;
    const { contentBytes } = this.progress();
    const { nulBytes, skippedLines, maskedTexts } = counters;
    const lost = { unreadable: counters.takeFields(), nulBytes, skippedLines, maskedTexts };
    return { ...this.committed.counts(), ...lost, contentBytes, commits: this.commits };
  }

  progress(): StreamProgress {
    const { records, rejected, notKept } = this.committed;
    const { builder, framer, commits } = this;
    return { records, rejected, notKept, commits, waiting: builder.rows, contentBytes: framer.contentOffset };
  }

  async run(): Promise<void> {
    try {
      await this.readFrames();
    } catch (error) {
      // Commit what was read before the stream broke.
      if (error instanceof SourceError) await this.commit();
      throw error;
    }
    this.requireRecord();
    await this.commit();
  }

  private async readFrames(): Promise<void> {
    let coming: Promise<Frame | null> | undefined;
    for (;;) {
      coming ??= this.framer.next();
      const frame = await this.frameOrDeadline(coming);
      if (frame === null) return;
      if (frame !== 'deadline') {
        coming = undefined;
        await this.decodeFrame(frame);
        if (frame.kind === 'tail') this.framer.keepTail();
        this.options.onProgress?.(this.progress());
      }
      if (this.deadlineMs() <= performance.now()) await this.commit();
    }
  }

  private deadlineMs(): number {
    return this.waitingSinceMs === null
      ? Infinity
      : this.waitingSinceMs + (this.options.commitMs ?? commitMsDefault);
  }

  private frameOrDeadline(coming: Promise<Frame | null>): Promise<Frame | null | 'deadline'> {
    const leftMs = this.deadlineMs() - performance.now();
    if (leftMs === Infinity) return coming;
    return orDeadline(coming, leftMs);
  }

  private async decodeFrame(frame: Frame): Promise<void> {
    const written = { byMs: this.options.now() };
    if (frame.kind === 'long') {
      this.decodedTo += frame.lengthBytes;
      await this.hold(frame, rejectedLongLine(frame, false), written);
      return;
    }
    const { bytes, end } = frame;
    for (let start = 0, reached = 0; start < end; start = reached) {
      // Yield to the event loop between turns, so that slow lines do not keep this thread from handling signals.
      if (start > 0) await setImmediate();
      this.decoder.use({ captures: noCaptures, written, reading: this.reading });
      const range = { start, end, continuesLine: false };
      const decoded = decodeRange(this.decoder, bytes, range, this.builder);
      ({ reached } = decoded);
      this.reading = decoded.reading;
      this.decodedTo += reached - start;
      await this.hold(frame, decoded.rejected, written);
    }
  }

  /** Keeps rejected lines of a frame for the next commit; commits at once when enough is waiting. */
  private async hold({ bytes, offset }: Frame, rejected: RejectedPlaces, { byMs }: Written): Promise<void> {
    const { definition } = this.options;
    const origin = { definition, file: streamName, base: offset, writtenMs: () => byMs };
    for (const each of toRejectedLines(rejected, bytes, origin)) {
      this.waitingRejected.push({ ...each, line: each.line.slice() });
      this.waitingRejectedBytes += each.line.length;
    }
    const waiting = this.builder.rows + this.waitingRejected.length;
    if (waiting > 0) this.waitingSinceMs ??= performance.now();
    const isMuch = waiting >= rowGroupRowsMax || this.waitingRejectedBytes >= waitingRejectedBytesMax;
    if (isMuch || this.builder.full) await this.commit();
  }

  private async commit(): Promise<void> {
    if (this.builder.rows + this.waitingRejected.length === 0) return;
    const records = this.builder.rows;
    const rejected = this.waitingRejected;
    const { counters } = this.decoder;
    const { committed } = this;
    const counts = {
      unreadableValues: counters.unreadableValues - committed.unreadableValues,
      replacedBytes: counters.replacedBytes - committed.replacedBytes,
      inputBytes: this.decodedTo - committed.contentBytes,
    };
    this.waitingRejected = [];
    this.waitingRejectedBytes = 0;
    this.waitingSinceMs = null;
    const { rejectedBytesMax } = this.options.definition;
    const previousTimeMs = this.lastTimeMs;
    const extras = { checkpoints: [], rejected, rejectedBytesMax, previousTimeMs, counters: counts };
    const untimed = counters.takeUntimed();
    const result = await this.builder.lend((batch) => {
      fillTimes(this.builder.schema, batch, untimed, this.options.now(), [{ rows: records, previousTimeMs }]);
      return this.append(batch, extras);
    });
    this.lastTimeMs = result.lastTimeMs;
    const { inputBytes: contentBytes, ...lost } = counts;
    const notKept = rejected.length - result.rejectedKept;
    committed.add({ records, rejected: rejected.length, notKept, contentBytes, ...lost });
    this.commits++;
    this.options.onProgress?.(this.progress());
  }

  private async append(batch: RecordBatch, extras: CommitExtras): Promise<AppendResult> {
    try {
      return await this.options.store.append(batch, extras, 'load');
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      const safe = this.committed.records;
      const message = `${error.message}. Reading stopped: ${safe} records are stored, the ${batch.length} read after them are not`;
      const { code, path, offset } = error;
      throw new LogstrataError(code, message, { path, offset, cause: error });
    }
  }

  private requireRecord(): void {
    const first = this.waitingRejected[0];
    if (this.commits > 0 || this.builder.rows > 0 || first === undefined) return;
    const lines = this.waitingRejected.length;
    this.waitingRejected = [];
    const content = { path: streamName, title: 'standard input', lines, first };
    throw noRecordError(this.options.definition.name, content);
  }
}
