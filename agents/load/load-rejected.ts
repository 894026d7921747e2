import {
  closing,
  fillTimes,
  isLogstrataError,
  type LoadSession,
  type LogstrataError,
  type RejectedEntry,
  type RejectedLine,
  type WorkerPool,
  type LoadedPart,
  type LoadEntry,
  type LostLoad,
} from '../../engine/index.js';
import {
  decodeSettings,
  type DecodeSettings,
  rangesLeft,
  type DecodedRange,
  type LineRange,
} from '../decode/decode-task.js';
import { decodeLines } from '../decode/lent-decoding.js';
import { isPartOfLine, rejectedText } from '../decode/rejected-lines.js';
import { pathCaptures } from '../decode/path-captures.js';
import { abandon, cancellationOf, type StoreSettings, readPartInto, formatOf } from './load-file.js';
import {
  LoadJournal,
  type JournalItem,
  FileTally,
  type LoadSummary,
  type LoadProgress,
} from './load-report.js';
import { streamName } from './load-stream.js';
import { stopFlagOf, type SignalFlag } from '../decode/stop-flag.js';
import { readColumnPartInto } from './column-file.js';
import { headersOf, type TableHeaders } from '../decode/table-headers.js';
import { SourceError } from '../sources/byte-source.js';
import type { Reading } from '../sources/source-position.js';
import { knownBeginnings, openPart } from '../sources/source-cursor.js';

/** Options of loading rejected lines. */
export interface LoadRejectedOptions extends StoreSettings {
  readonly workers: WorkerPool;
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
      session = await store.beginLoad({ codec, beyondRetention, takes });
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

/** A rejected line that is complete: what is decoded of it, which of a table's row is the row without its header. */
interface WholeLine {
  readonly line: RejectedLine;
  readonly row: Uint8Array;
  readonly reading: Reading | undefined;
}

/** Decodes the lines of one file of rejected lines into a session. */
class RejectedReading {
  private readonly sources = new Map<string, Source>();
  private readonly headers: TableHeaders | null;

  constructor(
    private readonly options: LoadRejectedOptions,
    private readonly settings: DecodeSettings,
    private readonly session: LoadSession,
    private readonly tally: JournalItem['tally'],
  ) {
    this.headers = headersOf(settings.definition);
  }

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
    const whole: WholeLine[] = [];
    for (const line of lines) {
      const kept = this.headers?.keptRow(line.line) ?? { row: line.line, reading: undefined };
      // An incomplete line never becomes a record, even if what is kept of it matches. A header is none either.
      if (isPartOfLine(line.reason) || kept === 'no use') await this.reject(line);
      else if (kept !== 'header') whole.push({ line, ...kept });
    }
    // Its own buffer, because it is transferred to a thread and back.
    let bytes: Uint8Array = new Uint8Array(whole.reduce((sum, { row }) => sum + row.length, 0));
    this.tally.contentBytes += bytes.length;
    let end = 0;
    const nowMs = this.options.now();
    let left = whole.map(({ line, row, reading }): LineRange => {
      bytes.set(row, end);
      const start = end;
      end += row.length;
      const written = { byMs: line.writtenMs ?? nowMs };
      return { start, end, captures, written, continuesLine: false, reading };
    });
    while (left.length > 0) {
      const { settings } = this;
      const decoded = await decodeLines(this.options.workers, { settings, ranges: left }, bytes, null);
      ({ bytes } = decoded);
      for (const [i, range] of decoded.ranges.entries())
        await this.keepRejected(whole[whole.length - left.length + i]!, left[i]!, range, bytes);
      const { batch, untimed, unreadableValues, unreadable, replacedBytes, skippedLines, maskedTexts } =
        decoded;
      this.tally.add({ unreadableValues, unreadable, replacedBytes, skippedLines, maskedTexts });
      if (batch !== null) {
        const rows = [{ rows: batch.length, previousTimeMs: null }];
        fillTimes(settings.definition.schema, batch, untimed, this.options.now(), rows);
        this.tally.records += batch.length;
        await this.session.append(batch, number);
      }
      left = rangesLeft(left, decoded.ranges, decoded.years);
    }
  }

  private async keepRejected(
    { line: from, row }: WholeLine,
    range: LineRange,
    { rows, rejected }: DecodedRange,
    bytes: Uint8Array,
  ): Promise<void> {
    const { reasons, starts } = rejected;
    const lineStart = range.end - row.length;
    for (let i = 0; i < reasons.length; i++) {
      const line = rejectedText(rejected, i, bytes);
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

/** Options of restoring lost records. */
export interface RestoringOptions extends StoreSettings {
  /** The files of the command. */
  readonly files: readonly string[];
}

/** Receives the progress of a file, and its counts so far. */
export type PartProgress = (tally: FileTally, phase: LoadProgress['phase'], fraction: number) => void;

/**
 * Restores records of earlier loads that were lost by damage. Reads again what those loads have read, in the same way; the
 * missing records get the positions back that they had. Existing records are unchanged.
 */
export class Restoring {
  private lost: readonly LostLoad[] | undefined;
  private readonly done = new Set<LoadEntry>();
  private readonly partsKnown = new Map<string, ReadonlySet<LoadedPart>>();

  constructor(private readonly options: RestoringOptions) {}

  /**
   * Restores the loads that read a file, each as one unit, and counts the restored records in `tally`. Throws `SourceError`
   * where the file gives other records than before, or where another file of the same load is missing; other errors are the
   * storage's. What was restored before an error stays.
   */
  async restore(path: string, tally: Pick<FileTally, 'restored'>, onProgress: PartProgress): Promise<void> {
    this.lost ??= await this.options.store.lostLoads();
    if (this.lost.length === 0) return;
    const parts = await this.partsIn(path);
    for (const lost of this.lost) {
      if (this.done.has(lost.load) || !lost.load.parts.some((part) => parts.has(part))) continue;
      tally.restored += await this.restoreLoad(lost, path, onProgress);
      this.done.add(lost.load);
    }
  }

  private readonly onPiece = (): void => this.options.signal?.throwIfAborted();

  /** The parts of damaged loads that a file contains. */
  private async partsIn(path: string): Promise<ReadonlySet<LoadedPart>> {
    const known = this.partsKnown.get(path);
    if (known !== undefined) return known;
    const parts = this.lost!.flatMap(({ load }) => load.parts);
    const ends = parts.map(({ until }) => until);
    const matches = new Set(await knownBeginnings(path, ends, this.onPiece, this.options.openFile));
    const found = new Set(parts.filter(({ until }) => matches.has(until)));
    this.partsKnown.set(path, found);
    return found;
  }

  private async restoreLoad(lost: LostLoad, path: string, onProgress: PartProgress): Promise<number> {
    const { store, codec } = this.options;
    const paths: string[] = [];
    for (const part of lost.load.parts) paths.push(await this.fileOf(part, path, lost));
    const session = await store.beginLoad({ restores: lost, codec });
    try {
      for (const [source, part] of lost.load.parts.entries())
        await this.readPart(paths[source]!, source, part, session, onProgress);
      const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
      return (await session.commit({ checkpoints: [], counters })).records;
    } catch (error) {
      if (!isLogstrataError(error) || !(error.code === 'invalid' || error.code === 'conflict')) throw error;
      if (error instanceof SourceError) throw error;
      throw new SourceError(error.code, `${path}: ${error.message}`, { path, cause: error });
    } finally {
      await abandon(session);
    }
  }

  /** Path of the file of the command that contains a part: the one that is being loaded, or another. */
  private async fileOf(part: LoadedPart, path: string, { load, runs }: LostLoad): Promise<string> {
    for (const file of [path, ...this.options.files]) {
      try {
        if ((await this.partsIn(file)).has(part)) return file;
      } catch (error) {
        // A file that can't be read is reported when it is loaded itself.
        if (!(error instanceof SourceError)) throw error;
      }
    }
    const records = runs.reduce((sum, { rows }) => sum + rows, 0);
    const names = load.parts.map(({ until }) => until.path).join(', ');
    throw new SourceError(
      'invalid',
      `${path}: ${records} records of a load that merged ${load.parts.length} files (${names}) are lost. To restore them, name all of these files in ` +
        `one command; ${part.until.path}, with its content of that time, is missing`,
      { path },
    );
  }

  private async readPart(
    path: string,
    source: number,
    part: LoadedPart,
    session: LoadSession,
    onProgress: PartProgress,
  ): Promise<void> {
    const tally = new FileTally();
    const job = {
      path,
      namedAs: part.until.path,
      source,
      checkpoints: [],
      session: () => Promise.resolve(session),
      tally,
      onProgress: (phase: LoadProgress['phase'], fraction: number) => onProgress(tally, phase, fraction),
    };
    const format = await formatOf(this.options, path);
    if (format !== 'lines') return readColumnPartInto(this.options, job, format, part.until);
    await closing(openPart(path, part, this.onPiece, this.options.openFile), async (positioned) => {
      await readPartInto(this.options, job, positioned, part.until);
    });
  }
}
