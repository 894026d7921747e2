import type { CollectLog } from '../collect/logs/collect-log.js';
import type { FileReport, LoadEvent } from '../load/load-report.js';
import type { FileProblems } from './file-problems.js';
import type { FoundFile, PathProblem } from './found-files.js';

/** How far the import of an agent's archive is. Files and bytes are those of the files as they lie there. */
export interface ImportStatus {
  readonly files: number;
  readonly bytes: number;
  readonly filesLeft: number;
  readonly bytesLeft: number;
  /** Files that wait until nobody has written to them for a while. */
  readonly filesWaiting: number;
  /** Since the server started. */
  readonly records: number;
  readonly rejected: number;
  /** The file under way; null for none. */
  readonly path: string | null;
  /** What is left takes about so long, in milliseconds; null where that is not known. */
  readonly msLeft: number | null;
  /** Why nothing is imported at present; null when it is. */
  readonly paused: string | null;
  readonly problems: number;
  /** The first of them. */
  readonly problemsListed: readonly PathProblem[];
}

/** How often it is told how far it is. */
const tellMs = 10_000;

/** Less than this says too little about the speed. */
const estimateAfterMs = 2000;

/** Counts what is imported, and says now and then how far it is. */
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
  /** When there was something to read first, and how many bytes were read since; null while there is nothing. */
  private work: { readonly sinceMs: number; bytesRead: number; toldMs: number } | null = null;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** A search has found `files`, of which `ready` are to be read now and `waiting` later. */
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
    this.log.info(facts, 'looking at the files of the archive');
  }

  /** A file was stored already. */
  passedOver(file: FoundFile): void {
    this.leave(file);
  }

  /** A file was read to its end, or failed. */
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

  /** Something has happened in the load of a file. */
  event(event: LoadEvent): void {
    if (event.kind === 'start') this.path = event.path;
    if (event.kind !== 'progress') return;
    if (event.phase !== 'checking') this.bytesReadOfFile = event.fileBytesRead;
    const nowMs = performance.now();
    if (this.work === null || nowMs - this.work.toldMs < tellMs) return;
    this.work.toldMs = nowMs;
    this.tell('storing the files of the archive');
  }

  /** All files that could be read are dealt with. */
  ended(): void {
    if (this.work === null) return;
    if (this.work.bytesRead > 0) this.tell('the files of the archive are stored');
    this.work = null;
  }

  /** The storage has failed. */
  pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.path = null;
    this.bytesReadOfFile = 0;
    if (this.paused !== message)
      this.log.error({ agent: this.agent }, `the import of the archive pauses: ${message}`);
    this.paused = message;
  }

  /** The storage works. */
  resume(): void {
    if (this.paused !== null) this.log.info({ agent: this.agent }, 'the import of the archive goes on');
    this.paused = null;
  }

  /** How far it is. */
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
