import type { CollectLog } from '../collect/logs/collect-log.js';
import type { FileReport, LoadEvent } from '../load/load-report.js';
import type { FileProblems } from './file-problems.js';
import type { FoundFile, PathProblem } from './found-files.js';

/** Progress of the import of an agent's archive. Files and bytes are counted as stored on disk. */
export interface ImportStatus {
  readonly files: number;
  readonly bytes: number;
  readonly filesLeft: number;
  readonly bytesLeft: number;
  /** Files that are not imported yet because they were written to recently. */
  readonly filesWaiting: number;
  /** Records since the server started. */
  readonly records: number;
  readonly rejected: number;
  /** The file being read; null for none. */
  readonly path: string | null;
  /** Estimate of the remaining time in milliseconds; null where it is not known. */
  readonly msLeft: number | null;
  /** Why the import is paused; null while it is not. */
  readonly paused: string | null;
  readonly problems: number;
  /** The first of them. */
  readonly problemsListed: readonly PathProblem[];
}

/** Interval of progress messages, in milliseconds. */
const tellMs = 10_000;

/** Before this time, the speed is not known well enough for an estimate. */
const estimateAfterMs = 2000;

/** Counts what is imported, and logs the progress at intervals. */
export class ImportTally {
  private files = 0;
  private bytes = 0;
  private filesLeft = 0;
  private bytesLeft = 0;
  private waiting = 0;
  private records = 0;
  private rejected = 0;
  private path: string | null = null;
  private bytesReadOfFile = 0;
  private paused: string | null = null;
  /** When there was first something to read, and the bytes read since; null while there is nothing to read. */
  private work: { readonly sinceMs: number; bytesRead: number; toldMs: number } | null = null;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** Records the result of a search: `files` were found; `ready` are to be read now, `waiting` later. */
  found(files: readonly FoundFile[], ready: readonly FoundFile[], waiting: number): void {
    this.files = files.length;
    this.bytes = sizeOf(files);
    this.filesLeft = ready.length;
    this.bytesLeft = sizeOf(ready);
    this.waiting = waiting;
    if (ready.length === 0 || this.work !== null) return;
    const nowMs = performance.now();
    this.work = { sinceMs: nowMs, bytesRead: 0, toldMs: nowMs };
    const facts = { agent: this.agent, files: this.files, bytes: this.bytes, left: this.filesLeft };
    this.log.info(facts, 'checking the archive files');
  }

  /** Records that a file was stored already. */
  passedOver(file: FoundFile): void {
    this.leave(file);
  }

  /** Records that a file was read to its end, or failed. */
  loaded(file: FoundFile, { records, rejected, outcome }: FileReport): void {
    if (outcome !== 'failed') {
      this.records += records;
      this.rejected += rejected;
    }
    if (this.work !== null) this.work.bytesRead += file.bytes;
    this.leave(file);
  }

  private leave({ bytes }: FoundFile): void {
    this.filesLeft--;
    this.bytesLeft -= bytes;
    this.bytesReadOfFile = 0;
    this.path = null;
  }

  /** Records an event of the load of a file. */
  event(event: LoadEvent): void {
    if (event.kind === 'start') this.path = event.path;
    if (event.kind !== 'progress') return;
    if (event.phase !== 'checking') this.bytesReadOfFile = event.fileBytesRead;
    const nowMs = performance.now();
    if (this.work === null || nowMs - this.work.toldMs < tellMs) return;
    this.work.toldMs = nowMs;
    this.tell('storing archive files');
  }

  /** Records that all files that can be read now are done. */
  ended(): void {
    if (this.work === null) return;
    if (this.work.bytesRead > 0) this.tell('all archive files are stored');
    this.work = null;
  }

  /** Records a failure of the storage. */
  pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.path = null;
    this.bytesReadOfFile = 0;
    if (this.paused !== message)
      this.log.error({ agent: this.agent }, `the import of the archive is paused: ${message}`);
    this.paused = message;
  }

  /** Records that the storage works again. */
  resume(): void {
    if (this.paused !== null) this.log.info({ agent: this.agent }, 'the import of the archive continues');
    this.paused = null;
  }

  /** The current progress. */
  status(problems: FileProblems): ImportStatus {
    return {
      files: this.files,
      bytes: this.bytes,
      filesLeft: this.filesLeft,
      bytesLeft: Math.max(0, this.bytesLeft - this.bytesReadOfFile),
      filesWaiting: this.waiting,
      records: this.records,
      rejected: this.rejected,
      path: this.path,
      msLeft: this.msLeft(),
      paused: this.paused,
      problems: problems.count,
      problemsListed: problems.list(),
    };
  }

  private msLeft(): number | null {
    if (this.work === null) return this.filesLeft === 0 ? 0 : null;
    const elapsedMs = performance.now() - this.work.sinceMs;
    const read = this.work.bytesRead + this.bytesReadOfFile;
    if (elapsedMs < estimateAfterMs || read === 0) return null;
    return Math.round((elapsedMs / read) * Math.max(0, this.bytesLeft - this.bytesReadOfFile));
  }

  private tell(message: string): void {
    const msLeft = this.msLeft();
    const facts = { agent: this.agent, left: this.filesLeft, bytesLeft: this.bytesLeft };
    const seconds = msLeft === null ? null : Math.round(msLeft / 1000);
    this.log.info(
      { ...facts, records: this.records, rejected: this.rejected, secondsLeft: seconds },
      message,
    );
  }
}

function sizeOf(files: readonly FoundFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}
