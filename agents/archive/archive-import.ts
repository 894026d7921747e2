import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerPool } from '../../engine/index.js';
import type { FileReport, LoadEvent } from '../load/load-report.js';
import {
  type ArchiveOptions,
  type ArchiveStatus,
  ArchiveTask,
  lookMs,
  retryMs,
  sizeOf,
} from './archive-task.js';
import { type FoundFile, findFiles } from './found-files.js';
import { EqualFiles } from '../sources/source-cursor.js';
import { loadFiles } from '../load/load.js';
import { GrowingFields } from './inferred-fields.js';

/** Progress of the import of an agent's archive. */
export interface ImportStatus extends ArchiveStatus {
  readonly bytesLeft: number;
  /** Records since the server started. */
  readonly records: number;
  readonly rejected: number;
  /** The file being read; null for none. */
  readonly path: string | null;
  /** Estimate of the remaining time in milliseconds; null where it is not known. */
  readonly msLeft: number | null;
}

/** Before this time, the speed is not known well enough for an estimate. */
const estimateAfterMs = 2000;

/** Options of importing an archive. */
export interface ImportOptions extends ArchiveOptions {
  readonly workers: WorkerPool;
  readonly timezone: string;
}

/** A file that was modified within this time may still be being written. */
const quietMs = 60_000;

/**
 * After each file, the import pauses for this fraction of the time that the file took, up to `restMsMax`: queries need the
 * disk and the threads too.
 */
const restFraction = 0.25;
const restMsMax = 1000;

/**
 * Imports the files of an archive while the server runs, the newest first. Each file is a unit, recognised by its content.
 * New files are imported when they come. A failure of a file is reported once, and the other files are imported.
 */
export class ArchiveImport extends ArchiveTask<ImportOptions> {
  private readonly fields: GrowingFields;
  private readonly equals: EqualFiles;
  private bytesLeft = 0;
  private records = 0;
  private rejected = 0;
  private path: string | null = null;
  private bytesReadOfFile = 0;
  /** When there was first something to read, and the bytes read since; null while there is nothing to read. */
  private work: { readonly sinceMs: number; bytesRead: number } | null = null;

  constructor(options: ImportOptions) {
    const work = 'the import of the archive';
    super(options, { pauses: `${work} is paused`, continues: `${work} continues` });
    this.equals = new EqualFiles(new Set(), this.openFile);
    this.fields = new GrowingFields(options);
  }

  /** The current progress. */
  status(): ImportStatus {
    const { records, rejected, path } = this;
    const bytesLeft = Math.max(0, this.bytesLeft - this.bytesReadOfFile);
    return { ...this.progress(), bytesLeft, records, rejected, path, msLeft: this.msLeft() };
  }

  private msLeft(): number | null {
    if (this.work === null) return this.filesLeft === 0 ? 0 : null;
    const elapsedMs = performance.now() - this.work.sinceMs;
    const read = this.work.bytesRead + this.bytesReadOfFile;
    if (elapsedMs < estimateAfterMs || read === 0) return null;
    return Math.round((elapsedMs / read) * Math.max(0, this.bytesLeft - this.bytesReadOfFile));
  }

  protected override async look(signal: AbortSignal): Promise<number> {
    const startedMs = performance.now();
    return (await this.round(signal)) ? 0 : this.untilNextLook(performance.now() - startedMs);
  }

  /** Searches files and imports some of them. Returns whether there are more. */
  private async round(signal: AbortSignal): Promise<boolean> {
    const { archive, dataFolder, objects, now } = this.options;
    const startedMs = performance.now();
    const { files, problems } = await findFiles(archive, dataFolder, objects);
    this.problems.ofSearch(problems);
    const paths = new Set(files.map(({ path }) => path));
    this.equals.found(paths);
    this.forgetGone(paths);
    const nowMs = now();
    const left = files.filter((file) => this.attemptOf(file) === undefined);
    const ready = left.filter(
      ({ mtimeMs, etag }) => etag !== undefined || Math.abs(nowMs - mtimeMs) >= quietMs,
    );
    this.hasFound(files, ready.length, left.length - ready.length);
    this.bytesLeft = sizeOf(ready);
    if (ready.length > 0 && this.work === null) {
      this.work = { sinceMs: performance.now(), bytesRead: 0 };
      this.tell('checking the archive files', {
        files: files.length,
        bytes: sizeOf(files),
        left: ready.length,
      });
    }
    const isStored = await this.storedFiles();
    for (const [i, file] of ready.entries()) {
      if (signal.aborted) return false;
      const fileStartedMs = performance.now();
      const againMs = await this.take(file, isStored, signal);
      this.attempted(file, now() + againMs);
      const nowMs = performance.now();
      const restMs = Math.min(restMsMax, (nowMs - fileStartedMs) * restFraction);
      if (restMs >= 1) await delay(restMs, undefined, { signal }).catch(() => {});
      // Search again, so that files that have come meanwhile also go first if they are newer.
      if (nowMs - startedMs >= lookMs && i + 1 < ready.length) return true;
    }
    if (this.work !== null && this.work.bytesRead > 0) this.tellProgress('all archive files are stored');
    this.work = null;
    return false;
  }

  /** Imports a file unless it is stored. Returns the milliseconds until it may be tried again although it has not changed. */
  private async take(
    file: FoundFile,
    isStored: (path: string) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<number> {
    const { path } = file;
    if (await isStored(path)) {
      this.leave(file);
      this.problems.clear(path);
      return Infinity;
    }
    const misfit = await this.fields.take(file, signal);
    if (misfit === undefined) return this.load(file, signal);
    this.leave(file);
    this.problems.ofFile(path, misfit);
    return Infinity;
  }

  private async load(file: FoundFile, signal: AbortSignal): Promise<number> {
    const { store, workers, timezone, now } = this.options;
    const { files, stopped } = await loadFiles({
      store,
      definition: this.fields.definition,
      timezone,
      now,
      signal,
      workers,
      files: [file.path],
      formats: new Map([[file.path, file.format]]),
      openFile: this.openFile,
      equals: this.equals,
      // What a load asks about is not stored without an answer; the file is a problem until then.
      acceptUntimed: () => Promise.resolve(false),
      onEvent: (event) => this.note(event),
    });
    if (stopped !== null) throw stopped;
    const report = files[0]!;
    if (report.outcome !== 'failed') {
      this.records += report.records;
      this.rejected += report.rejected;
    }
    if (this.work !== null) this.work.bytesRead += file.bytes;
    this.leave(file);
    this.tellLost(report);
    return report.outcome === 'failed' && mayBecomeReadable(report) ? retryMs : Infinity;
  }

  private leave({ bytes }: FoundFile): void {
    this.filesLeft--;
    this.bytesLeft -= bytes;
    this.bytesReadOfFile = 0;
    this.path = null;
  }

  protected override pause(error: unknown): void {
    this.path = null;
    this.bytesReadOfFile = 0;
    super.pause(error);
  }

  private note(event: LoadEvent): void {
    if (event.kind === 'start') this.path = event.path;
    if (event.kind !== 'progress') return;
    if (event.phase !== 'checking') this.bytesReadOfFile = event.fileBytesRead;
    if (this.work !== null && this.mayTell) this.tellProgress('storing archive files');
  }

  private tellProgress(message: string): void {
    const { filesLeft: left, bytesLeft, records, rejected } = this;
    const msLeft = this.msLeft();
    const secondsLeft = msLeft === null ? null : Math.round(msLeft / 1000);
    this.tell(message, { left, bytesLeft, records, rejected, secondsLeft });
  }

  private tellLost(report: FileReport): void {
    const { path, error, rejected, notKept, records, unreadableValues, replacedBytes, nulBytes } = report;
    if (error === null) this.problems.clear(path);
    else this.problems.ofFile(path, error.message);
    const { definition, log } = this.options;
    const agent = definition.name;
    if (rejected > 0)
      log.warn({ agent, path, records, rejected, notKept }, 'lines of an archive file were rejected');
    if (unreadableValues + replacedBytes > 0)
      log.warn(
        { agent, path, records, unreadableValues, replacedBytes },
        'values of an archive file did not fit the types of their fields',
      );
    if (nulBytes > 0)
      log.warn({ agent, path, nulBytes }, 'NULs before lines of an archive file were left out');
  }
}

/** Whether a file may be readable next time without a change: permissions may change, or another process may have stored it meanwhile. */
function mayBecomeReadable({ error }: FileReport): boolean {
  return error?.code === 'io' || error?.code === 'conflict' || error?.code === 'not_found';
}
