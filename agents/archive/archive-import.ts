import { setTimeout as delay } from 'node:timers/promises';
import {
  isLogstrataError,
  type AgentStore,
  type Checkpoint,
  type ObjectStorage,
  type WorkerPool,
} from '../../engine/index.js';
import { type OpenFile, openerOf } from '../sources/opened-file.js';
import { isStoredAsItLies } from '../sources/source-cursor.js';
import type { CollectLog } from '../collect/logs/collect-log.js';
import type { FileReport, LoadEvent } from '../load/load-report.js';
import { FileProblems } from './archive-report.js';
import {
  type FoundFile,
  type PathProblem,
  findFiles,
  keepLooking,
  lookMs,
  retryMs,
  untilNextLook,
} from './found-files.js';
import type { WakeUp } from '../collect/logs/wake-up.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { EqualFiles } from '../load/equal-files.js';
import { loadFiles } from '../load/load.js';
import { GrowingFields } from './inferred-fields.js';

/** The files whose records are stored, by path. */
export class StoredFiles {
  private readonly byPath = new Map<string, Checkpoint[]>();

  private constructor(
    checkpoints: readonly Checkpoint[],
    private readonly openFile: OpenFile,
  ) {
    for (const checkpoint of checkpoints) {
      const others = this.byPath.get(checkpoint.path);
      if (others === undefined) this.byPath.set(checkpoint.path, [checkpoint]);
      else others.push(checkpoint);
    }
  }

  /** Loads the checkpoints of an agent. Throws what the storage throws. */
  static async of(store: AgentStore, openFile: OpenFile): Promise<StoredFiles> {
    return new StoredFiles(await store.checkpoints(), openFile);
  }

  /**
   * Whether a file is stored as it is on disk (`isStoredAsItLies`). A file that can't be read counts as not stored; its
   * error is reported when it is read.
   */
  async has(path: string): Promise<boolean> {
    try {
      return await isStoredAsItLies(path, this.byPath.get(path) ?? [], this.openFile);
    } catch (error) {
      if (!isLogstrataError(error)) throw error;
      return false;
    }
  }
}

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
class ImportTally {
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

/** Options of importing an archive. */
export interface ImportOptions {
  readonly definition: AgentDefinition;
  readonly archive: ArchiveInput;
  readonly store: AgentStore;
  /** Our own data folder, whose files do not belong to the archive. */
  readonly dataFolder: string | undefined;
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  readonly workers: WorkerPool;
  readonly log: CollectLog;
  readonly now: () => number;
  readonly timezone: string;
  /** Adds fields to the agent: those of columns that new files have. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
  /** See `keepLooking`. */
  readonly onRefused?: ((reason: string) => void) | undefined;
}

/** A file that was modified within this time may still be being written. */
export const quietMs = 60_000;

/**
 * After each file, the import pauses for this fraction of the time that the file took, up to `restMsMax`: queries need the
 * disk and the threads too.
 */
const restFraction = 0.25;
const restMsMax = 1000;

/** A file's state when it was dealt with; it is left alone until it changes. */
interface Attempt {
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly etag: string | undefined;
  /** When it is tried again even if it has not changed. */
  readonly againMs: number;
}

/**
 * Imports the files of an archive while the server runs, the newest first. Each file is a unit, recognised by its content.
 * New files are imported when they come. A failure of a file is reported once, and the other files are imported.
 */
export class ArchiveImport {
  private readonly attempts = new Map<string, Attempt>();
  private readonly problems: FileProblems;
  private readonly tally: ImportTally;
  private readonly openFile: OpenFile;
  private readonly fields: GrowingFields;
  private readonly equals: EqualFiles;

  constructor(private readonly options: ImportOptions) {
    this.openFile = openerOf(options.objects);
    this.equals = new EqualFiles(new Set(), this.openFile);
    this.fields = new GrowingFields(options);
    this.problems = new FileProblems(options.definition.name, options.log);
    this.tally = new ImportTally(options.definition.name, options.log);
  }

  /** The current progress. */
  status(): ImportStatus {
    return this.tally.status(this.problems);
  }

  /** Imports until the signal aborts; see `keepLooking`. */
  async run(signal: AbortSignal, wakeUp: WakeUp): Promise<void> {
    const look = async (): Promise<number> => {
      const startedMs = performance.now();
      return (await this.round(signal)) ? 0 : untilNextLook(performance.now() - startedMs);
    };
    await keepLooking(signal, wakeUp, this.tally, look, this.options.onRefused);
  }

  /** Searches files and imports some of them. Returns whether there are more. */
  private async round(signal: AbortSignal): Promise<boolean> {
    const { archive, dataFolder, objects, store, now } = this.options;
    const startedMs = performance.now();
    const { files, problems } = await findFiles(archive, dataFolder, objects);
    this.problems.ofSearch(problems);
    this.forgetGone(files);
    const nowMs = now();
    const left = files.filter((file) => !this.isDone(file, nowMs));
    const ready = left.filter(
      ({ mtimeMs, etag }) => etag !== undefined || Math.abs(nowMs - mtimeMs) >= quietMs,
    );
    this.tally.found(files, ready, left.length - ready.length);
    const stored = await StoredFiles.of(store, this.openFile);
    for (const [i, file] of ready.entries()) {
      if (signal.aborted) return false;
      const fileStartedMs = performance.now();
      await this.take(file, stored, signal);
      const nowMs = performance.now();
      const restMs = Math.min(restMsMax, (nowMs - fileStartedMs) * restFraction);
      if (restMs >= 1) await delay(restMs, undefined, { signal }).catch(() => {});
      // Search again, so that files that have come meanwhile also go first if they are newer.
      if (nowMs - startedMs >= lookMs && i + 1 < ready.length) return true;
    }
    this.tally.ended();
    return false;
  }

  private forgetGone(files: readonly FoundFile[]): void {
    const paths = new Set(files.map(({ path }) => path));
    this.equals.found(paths);
    for (const path of this.attempts.keys()) {
      if (paths.has(path)) continue;
      this.attempts.delete(path);
      this.problems.clear(path);
    }
  }

  private isDone({ path, bytes, mtimeMs, etag }: FoundFile, nowMs: number): boolean {
    const attempt = this.attempts.get(path);
    const isSame = attempt?.bytes === bytes && attempt.mtimeMs === mtimeMs && attempt.etag === etag;
    return isSame && nowMs < attempt.againMs;
  }

  private async take(file: FoundFile, stored: StoredFiles, signal: AbortSignal): Promise<void> {
    const { now } = this.options;
    const { path, bytes, mtimeMs, etag } = file;
    let againMs = Infinity;
    if (await stored.has(path)) {
      this.tally.passedOver(file);
      this.problems.clear(path);
    } else {
      const misfit = await this.fields.take(file, signal);
      if (misfit === undefined) againMs = await this.load(file, signal);
      else {
        this.tally.passedOver(file);
        this.problems.ofFile(path, misfit);
      }
    }
    if (againMs < Infinity) againMs += now();
    this.attempts.set(path, { bytes, mtimeMs, etag, againMs });
  }

  /** Imports a file. Returns the milliseconds until it may be tried again although it has not changed. */
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
      onEvent: (event) => this.tally.event(event),
    });
    if (stopped !== null) throw stopped;
    const report = files[0]!;
    this.tally.loaded(file, report);
    this.tell(report);
    return report.outcome === 'failed' && mayBecomeReadable(report) ? retryMs : Infinity;
  }

  private tell(report: FileReport): void {
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
