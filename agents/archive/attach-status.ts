import type { CollectLog } from '../collect/logs/collect-log.js';
import type { FileProblems } from './file-problems.js';
import type { FoundFile, PathProblem } from './found-files.js';

/** Progress of attaching the files of an agent's archive, which are queried in place. */
export interface AttachStatus {
  readonly files: number;
  readonly bytes: number;
  /** Files that are still to be attached. */
  readonly filesLeft: number;
  /** Files that are still being written. */
  readonly filesWaiting: number;
  /** Files that are still to be indexed; null where that is not known yet. */
  readonly filesToIndex: number | null;
  /** Why attaching is paused; null while it is not. */
  readonly paused: string | null;
  readonly problems: number;
  /** The first of them. */
  readonly problemsListed: readonly PathProblem[];
}

/** The changes of one round. */
export interface AttachRound {
  readonly attached: number;
  readonly rows: number;
  readonly moved: number;
  readonly removed: number;
  /** Files that are still being written. */
  readonly waiting: number;
  /** Current problems of files and folders. */
  readonly problems: readonly PathProblem[];
}

/** Interval of progress messages, in milliseconds. */
const tellMs = 10_000;

/** Counts what is attached and indexed, and logs the progress at intervals. */
export class AttachTally {
  private files = 0;
  private bytes = 0;
  private filesLeft = 0;
  private waiting = 0;
  private filesToIndex: number | null = null;
  private paused: string | null = null;
  private toldMs = -Infinity;

  constructor(
    private readonly agent: string,
    private readonly log: CollectLog,
  ) {}

  /** Records the result of a search: `files` were found; `ready` are attached now, `waiting` later. */
  found(files: readonly FoundFile[], ready: number, waiting: number): void {
    this.files = files.length;
    this.bytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
    this.filesLeft = ready;
    this.waiting = waiting;
    if (ready === 0) return;
    this.toldMs = performance.now();
    this.log.info({ agent: this.agent, files: this.files, left: ready }, 'attaching archive files');
  }

  /** Records that this many files were attached or failed. */
  attached(files: number): void {
    this.filesLeft -= files;
    const nowMs = performance.now();
    if (this.filesLeft === 0 || nowMs - this.toldMs < tellMs) return;
    this.toldMs = nowMs;
    this.log.info({ agent: this.agent, left: this.filesLeft }, 'attaching archive files');
  }

  /** Records the end of a round. */
  done({ attached, rows, moved, removed }: Omit<AttachRound, 'waiting' | 'problems'>): void {
    this.filesLeft = 0;
    if (attached > 0) this.filesToIndex = null;
    if (attached + moved + removed === 0) return;
    this.log.info({ agent: this.agent, attached, rows, moved, removed }, 'all archive files are attached');
  }

  /** Records that files were indexed, and how many are left. */
  indexed(files: number, left: number): void {
    this.filesToIndex = left;
    if (files === 0) return;
    const nowMs = performance.now();
    if (left > 0 && nowMs - this.toldMs < tellMs) return;
    this.toldMs = nowMs;
    const message = left === 0 ? 'all archive files are indexed' : 'indexing archive files';
    this.log.info({ agent: this.agent, left }, message);
  }

  /** Records a failure of the storage. */
  pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.paused !== message) this.log.error({ agent: this.agent }, `attaching pauses: ${message}`);
    this.paused = message;
  }

  /** Records that the storage works again. */
  resume(): void {
    if (this.paused !== null) this.log.info({ agent: this.agent }, 'attaching continues');
    this.paused = null;
  }

  /** The current progress. */
  status(problems: FileProblems): AttachStatus {
    return {
      files: this.files,
      bytes: this.bytes,
      filesLeft: this.filesLeft,
      filesWaiting: this.waiting,
      filesToIndex: this.filesToIndex,
      paused: this.paused,
      problems: problems.count,
      problemsListed: problems.list(),
    };
  }
}
