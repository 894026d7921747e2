import { groupBy, isLogstrataError, type AgentStore, type ObjectStorage } from '../../engine/index.js';
import type { CollectLog } from '../collect/logs/collect-log.js';
import type { WakeUp } from '../collect/logs/wake-up.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { type OpenFile, openerOf } from '../sources/opened-file.js';
import { isStoredUnchanged } from '../sources/source-cursor.js';
import { FileProblems } from './archive-report.js';
import type { FoundFile, PathProblem } from './found-files.js';
import { ArchiveRefusal } from './table-logs.js';

/** Options of importing or attaching the files of an archive. */
export interface ArchiveOptions {
  readonly definition: AgentDefinition;
  readonly archive: ArchiveInput;
  readonly store: AgentStore;
  /** Our own data folder, whose files do not belong to the archive. */
  readonly dataFolder: string | undefined;
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  readonly log: CollectLog;
  readonly now: () => number;
  /** Adds fields to the agent: those of columns that new files have. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
  /** Receives why the archive can't be used at all: `ArchiveRefusal`. */
  readonly onRefused?: ((reason: string) => void) | undefined;
}

/** Progress with the files of an agent's archive. Files and bytes are counted as stored on disk. */
export interface ArchiveStatus {
  readonly files: number;
  readonly bytes: number;
  /** Files that are still to be imported or attached. */
  readonly filesLeft: number;
  /** Files that wait, because they are still being written. */
  readonly filesWaiting: number;
  /** Why it is paused; null while it is not. */
  readonly paused: string | null;
  readonly problems: number;
  /** The first of them. */
  readonly problemsListed: readonly PathProblem[];
}

/** A file's state when it was dealt with; it is left alone until it changes. */
interface Attempt {
  readonly file: FoundFile;
  /** When it is tried again even if it has not changed. */
  readonly againMs: number;
  /** Why it could not be taken; null where it was taken or its problem is listed already. */
  readonly problem: string | null;
}

/** Interval at which the folders are searched for files that are new, moved, changed or gone. */
export const lookMs = 10_000;

/** Searching takes at most this fraction of the time, so that an archive with very many files is searched less often. */
const lookFraction = 0.1;

/** Delay before the next attempt after a failure of the storage, or with a file that could not be taken. */
export const retryMs = 60_000;

/** Interval of progress messages, in milliseconds. */
const tellMs = 10_000;

/** Searches an archive again and again, takes the files that it finds, and reports the progress. */
export abstract class ArchiveTask<Options extends ArchiveOptions = ArchiveOptions> {
  protected readonly openFile: OpenFile;
  protected readonly problems: FileProblems;
  protected filesLeft = 0;
  private files = 0;
  private bytes = 0;
  private filesWaiting = 0;
  private paused: string | null = null;
  private toldMs = -Infinity;
  private readonly attempts = new Map<string, Attempt>();

  /** @param words messages for a pause and for its end */
  constructor(
    protected readonly options: Options,
    private readonly words: { readonly pauses: string; readonly continues: string },
  ) {
    this.openFile = openerOf(options.objects);
    this.problems = new FileProblems(options.definition.name, options.log);
  }

  /** Does one round. Returns the milliseconds to wait before the next one. */
  protected abstract look(signal: AbortSignal): Promise<number>;

  /** Searches until the signal aborts (the caller then also calls the wake-up, to end a sleep). Pauses after a failure. */
  async run(signal: AbortSignal, wakeUp: WakeUp): Promise<void> {
    while (!signal.aborted) {
      let waitMs = retryMs;
      try {
        waitMs = await this.look(signal);
        if (this.paused !== null) this.tell(this.words.continues);
        this.paused = null;
      } catch (error) {
        if (signal.aborted) return;
        this.pause(error);
        if (error instanceof ArchiveRefusal) this.options.onRefused?.(error.message);
      }
      if (waitMs > 0 && !signal.aborted) await wakeUp.sleep(waitMs);
    }
  }

  /** Records a failure of the storage. */
  protected pause(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const { log, definition } = this.options;
    if (this.paused !== message) log.error({ agent: definition.name }, `${this.words.pauses}: ${message}`);
    this.paused = message;
  }

  /** Time from the beginning of one search to the next, where the search took `tookMs`. */
  protected untilNextLook(tookMs: number): number {
    return Math.max(lookMs, tookMs / lookFraction);
  }

  /** Records the result of a search: of `files`, `ready` are to be taken now, and `waiting` later. */
  protected hasFound(files: readonly FoundFile[], ready: number, waiting: number): void {
    this.files = files.length;
    this.bytes = sizeOf(files);
    this.filesLeft = ready;
    this.filesWaiting = waiting;
  }

  /** Records that a file was dealt with. */
  protected attempted(file: FoundFile, againMs: number, problem: string | null = null): void {
    this.attempts.set(file.path, { file, againMs, problem });
  }

  /** What became of a file that is to be left alone for now; undefined where it is to be dealt with. */
  protected attemptOf({ path, bytes, mtimeMs, etag }: FoundFile): Attempt | undefined {
    const attempt = this.attempts.get(path);
    const before = attempt?.file;
    const isSame = before?.bytes === bytes && before.mtimeMs === mtimeMs && before.etag === etag;
    return isSame && this.options.now() < attempt!.againMs ? attempt : undefined;
  }

  /** Forgets what became of files that are gone. */
  protected forgetGone(paths: ReadonlySet<string>): void {
    for (const path of this.attempts.keys()) {
      if (paths.has(path)) continue;
      this.attempts.delete(path);
      this.problems.clear(path);
    }
  }

  /**
   * Returns a function that tells whether a file is stored as it is on disk (`isStoredAsItLies`). A file that can't be read
   * counts as not stored; its error is reported when it is read. Throws what the storage throws.
   */
  protected async storedFiles(): Promise<(path: string) => Promise<boolean>> {
    const byPath = groupBy(await this.options.store.checkpoints(), ({ path }) => path);
    return async (path) => {
      try {
        return await isStoredUnchanged(path, byPath.get(path) ?? [], this.openFile);
      } catch (error) {
        if (!isLogstrataError(error)) throw error;
        return false;
      }
    };
  }

  /** Whether a progress message is due. */
  protected get mayTell(): boolean {
    return performance.now() - this.toldMs >= tellMs;
  }

  /** Logs the progress. */
  protected tell(message: string, facts: Readonly<Record<string, number | null>> = {}): void {
    this.toldMs = performance.now();
    this.options.log.info({ agent: this.options.definition.name, ...facts }, message);
  }

  protected progress(): ArchiveStatus {
    const { files, bytes, filesLeft, filesWaiting, paused, problems } = this;
    return {
      files,
      bytes,
      filesLeft,
      filesWaiting,
      paused,
      problems: problems.count,
      problemsListed: problems.list(),
    };
  }
}

/** The size of files together. */
export function sizeOf(files: readonly FoundFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}
