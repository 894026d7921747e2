import { setTimeout as delay } from 'node:timers/promises';
import { type AgentStore, type ObjectStorage, type WorkerPool } from '../../engine/index.js';
import type { CollectLog } from '../collect/logs/collect-log.js';
import type { WakeUp } from '../collect/logs/wake-up.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { EqualFiles } from '../load/equal-files.js';
import { loadFiles } from '../load/load.js';
import type { FileReport } from '../load/load-report.js';
import type { OpenFile } from '../sources/opened-file.js';
import { openerOf } from '../sources/opened-object.js';
import { GrowingFields } from './growing-fields.js';
import { FileProblems } from './file-problems.js';
import { findFiles, type FoundFile } from './found-files.js';
import { keepLooking, lookMs, retryMs, untilNextLook } from './looking.js';
import { StoredFiles } from './stored-files.js';
import { ImportTally, type ImportStatus } from './import-status.js';

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
