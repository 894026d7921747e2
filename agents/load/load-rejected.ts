import {
  type Codec,
  isLogstrataError,
  type LoadSession,
  type LogstrataError,
  type RejectedEntry,
  type RejectedLine,
  type WorkerPool,
} from '../../engine/index.js';
import { decodeSettings, type DecodeSettings } from '../frames/decode-task.js';
import { decodeLines } from '../frames/lent-decoding.js';
import { rangesLeft, type DecodedRange, type LineRange } from '../frames/line-range.js';
import { isPartOfLine } from '../frames/rejected-lines.js';
import { joinUnreadable } from '../decode/value-counters.js';
import { pathCaptures } from '../decode/path-captures.js';
import { abandon, cancellationOf, type ReadSettings } from './load-file.js';
import { LoadJournal, type JournalItem } from './load-journal.js';
import type { LoadEvent, LoadSummary } from './load-report.js';
import { streamName } from './load-stream.js';
import { stopFlagOf, type SignalFlag } from '../decode/stop-flag.js';

/** Options of loading rejected lines. */
export interface LoadRejectedOptions extends ReadSettings {
  readonly workers: WorkerPool;
  readonly codec?: Codec | undefined;
  /** Also store records older than the agent's retention period, for that period from now on. */
  readonly beyondRetention?: boolean | undefined;
  readonly onEvent?: ((event: LoadEvent) => void) | undefined;
}

/**
 * Loads an agent's rejected lines again, after its pattern was corrected. Each file of rejected lines is a unit: the lines
 * that now become records leave the file at the moment in which the records become visible and durable; the others stay,
 * with their new reason and their original position. A file in which no line becomes a record is left unchanged, and so is a
 * file with a failure of its own. Records are placed as in a load: one with an unreadable time is placed like the record
 * before it from the same source. Field values from a file name come from the name of the file that the line was read from.
 *
 * Expected failures are in the summary, never thrown. Without rejected lines, the summary has no files.
 */
export async function loadRejected(options: LoadRejectedOptions): Promise<LoadSummary> {
  let files: readonly RejectedEntry[];
  try {
    files = await options.store.rejectedFiles();
  } catch (error) {
    if (!isLogstrataError(error)) throw error;
    return new LoadJournal(0, options.onEvent).summary(0, error);
  }
  return new RejectedLoad(options, files).run();
}

/** Errors that concern a single file and do not stop the load. */
const ownFailures: readonly LogstrataError['code'][] = ['damaged', 'not_found', 'conflict', 'invalid'];

class RejectedLoad {
  private readonly journal: LoadJournal;
  private readonly settings: DecodeSettings;
  private readonly stopping: SignalFlag;
  private stopped: LogstrataError | null = null;

  constructor(
    private readonly options: LoadRejectedOptions,
    private readonly files: readonly RejectedEntry[],
  ) {
    this.journal = new LoadJournal(files.length, options.onEvent);
    this.stopping = stopFlagOf(options.signal);
    this.settings = decodeSettings(options.definition, options.timezone, this.stopping.stop);
  }

  async run(): Promise<LoadSummary> {
    for (const [index, entry] of this.files.entries()) {
      const path = `${this.options.store.name}/${entry.file}`;
      const item = this.journal.item(path, index, this.stopped === null);
      item.tally.fileBytes = entry.bytes;
      if (this.stopped !== null) this.journal.report(item, 'not_stored', null);
      else await this.loadOne(item, entry);
    }
    this.stopping.release();
    return this.journal.summary(0, this.stopped);
  }

  private async loadOne(item: JournalItem, takes: RejectedEntry): Promise<void> {
    const { store, codec, beyondRetention = false, signal } = this.options;
    let session: LoadSession | undefined;
    try {
      signal?.throwIfAborted();
      session = await store.beginLoad({ ...(codec === undefined ? {} : { codec }), beyondRetention, takes });
      await new RejectedReading(this.options, this.settings, session, item.tally).run(takes, () =>
        this.journal.progress(item, 'reading', item.tally.fileBytesRead / item.tally.fileBytes),
      );
      if (item.tally.records === 0) {
        this.journal.report(item, 'still_rejected', null);
        return;
      }
      const { unreadableValues, replacedBytes } = item.tally;
      // The bytes of these lines were counted when they were first read.
      const counters = { unreadableValues, replacedBytes, inputBytes: 0 };
      const { id, bytesOnDisk } = await session.commit({ checkpoints: [], counters }, (fraction) =>
        this.journal.progress(item, 'writing', fraction),
      );
      this.journal.report(item, 'loaded', null, { load: id, bytesOnDisk });
    } catch (error) {
      const failure = cancellationOf(error, signal);
      if (!isLogstrataError(failure)) throw failure;
      if (!ownFailures.includes(failure.code)) this.stopped = failure;
      this.journal.report(item, failure.code === 'cancelled' ? 'not_stored' : 'failed', failure);
    } finally {
      await abandon(session);
    }
  }
}

/** A file that rejected lines were read from. */
interface Source {
  /** Distinguishes the sources of a unit. */
  readonly number: number;
  readonly captures: ReadonlyMap<string, string>;
}

/** Decodes the lines of one file of rejected lines into a session. */
class RejectedReading {
  private readonly sources = new Map<string, Source>();

  constructor(
    private readonly options: LoadRejectedOptions,
    private readonly settings: DecodeSettings,
    private readonly session: LoadSession,
    private readonly tally: JournalItem['tally'],
  ) {}

  async run(entry: RejectedEntry, onProgress: () => void): Promise<void> {
    const { store, signal } = this.options;
    let linesRead = 0;
    for await (const lines of store.rejectedLines(entry)) {
      signal?.throwIfAborted();
      for (let from = 0, to = 0; from < lines.length; from = to) {
        const { file } = lines[from]!;
        while (to < lines.length && lines[to]!.file === file) to++;
        await this.decode(this.sourceOf(file), lines.slice(from, to));
      }
      linesRead += lines.length;
      this.tally.fileBytesRead = Math.round((entry.bytes * linesRead) / entry.lines);
      onProgress();
    }
  }

  private sourceOf(file: string): Source {
    const known = this.sources.get(file);
    if (known !== undefined) return known;
    const captures =
      file === streamName ? new Map<string, string>() : pathCaptures(this.options.definition, file);
    const source = { number: this.sources.size, captures };
    this.sources.set(file, source);
    return source;
  }

  /** Decodes lines of one source. */
  private async decode({ number, captures }: Source, lines: readonly RejectedLine[]): Promise<void> {
    const whole: RejectedLine[] = [];
    // An incomplete line never becomes a record, even if what is kept of it matches.
    for (const line of lines) await (isPartOfLine(line.reason) ? this.reject(line) : whole.push(line));
    // Its own buffer, because it is transferred to a thread and back.
    let bytes: Uint8Array = new Uint8Array(whole.reduce((sum, { line }) => sum + line.length, 0));
    this.tally.contentBytes += bytes.length;
    let end = 0;
    const nowMs = this.options.now();
    let left = whole.map(({ line, writtenMs = nowMs }): LineRange => {
      bytes.set(line, end);
      const start = end;
      end += line.length;
      const written = { byMs: writtenMs };
      return { start, end, captures, written, continuesLine: false };
    });
    while (left.length > 0) {
      const { settings } = this;
      const decoded = await decodeLines(this.options.workers, { settings, ranges: left }, bytes, null);
      ({ bytes } = decoded);
      for (const [i, range] of decoded.ranges.entries())
        await this.keepRejected(whole[whole.length - left.length + i]!, left[i]!, range, bytes);
      this.tally.unreadableValues += decoded.unreadableValues;
      joinUnreadable(this.tally.unreadable, decoded.unreadable);
      this.tally.replacedBytes += decoded.replacedBytes;
      const { batch } = decoded;
      if (batch !== null) {
        this.tally.records += batch.length;
        await this.session.append(batch, number);
      }
      left = rangesLeft(left, decoded.ranges, decoded.years);
    }
  }

  private async keepRejected(
    from: RejectedLine,
    range: LineRange,
    { rows, rejected }: DecodedRange,
    bytes: Uint8Array,
  ): Promise<void> {
    const { reasons, starts, ends } = rejected;
    const lineStart = range.end - from.line.length;
    for (let i = 0; i < reasons.length; i++) {
      const line = bytes.subarray(starts[i], ends[i]);
      await this.reject({ ...from, reason: reasons[i]!, offset: from.offset + starts[i]! - lineStart, line });
    }
    // Blank lines that the format ignores gave neither a record nor a rejection: keep them as they are.
    if (rows + reasons.length === 0 && range.start === lineStart) await this.reject(from);
  }

  private async reject(line: RejectedLine): Promise<void> {
    await this.session.reject(line);
    this.tally.rejected++;
  }
}
