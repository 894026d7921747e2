import { basename, dirname } from 'node:path';
import type { Checkpoint } from '../../../engine/index.js';
import { describeSystemError, SourceError, systemCode, userName } from '../../sources/byte-source.js';
import type { CollectLog } from './collect-log.js';
import type { FollowedFile } from './followed-file.js';
import type { FileStatus } from './log-files.js';
import { isDue } from './log-state.js';
import type { OpenFiles } from './open-files.js';

/** Limit on the names that one message lists. */
const namesShownMax = 3;

/** Isolates failures of single files: each is reported once, and the file is tried again later. */
export class FileAttempts {
  /** Files without read permission that `tellDenied` has not reported yet. */
  #denied: FollowedFile[] = [];
  /** Whether the shortage of file handles has been reported. */
  private isShort = false;
  /**
   * Compressed files that are damaged or end too early, with the status that they had: another attempt would decompress the
   * same bytes again, unless the file has changed since, as one does that is still being written.
   */
  readonly #damaged = new WeakMap<FollowedFile, FileStatus>();

  constructor(
    private readonly agent: string,
    private readonly handles: OpenFiles,
    private readonly now: () => number,
    private readonly log: CollectLog,
  ) {}

  /** Whether a file may be tried: it has not failed, or the delay after its failure is over, or what was wrong with it has changed. */
  mayTry(file: FollowedFile): boolean {
    const failed = this.#damaged.get(file);
    if (failed === undefined) return isDue(file.state, this.now());
    const { sizeBytes, modifiedMs } = file.state.status;
    return sizeBytes !== failed.sizeBytes || modifiedMs !== failed.modifiedMs;
  }

  /** Has compressed files opened anew at their stored position that failed and may be tried: decompression can't go on behind a failure. */
  reopen(files: Iterable<FollowedFile>): void {
    for (const file of files)
      if (file.kind === 'packed' && file.state.failure !== null && this.mayTry(file))
        file.observe({ kind: 'doubted' });
  }

  /** Runs an operation on one file. Throws errors that are not failures of the file. */
  async run(file: FollowedFile, attempt: () => Promise<void>): Promise<void> {
    try {
      await attempt();
      // A damaged file that waits until it has not changed for a while has not been read yet.
      if (file.kind === 'waiting' && this.#damaged.has(file)) return;
      this.#damaged.delete(file);
      const hadFailed = file.state.failure !== null;
      file.observe({ kind: 'succeeded' });
      if (hadFailed) this.log.info({ agent: this.agent, file: file.path }, 'a log can be read again');
    } catch (error) {
      const code = systemCode(error);
      if (!(error instanceof SourceError) && code === undefined) throw error;
      await this.handles.release(file);
      if (error instanceof SourceError && error.code === 'damaged')
        this.#damaged.set(file, file.state.status);
      this.tell(file, error, code);
    }
  }

  private tell(file: FollowedFile, error: unknown, code: string | undefined): void {
    const { agent, log } = this;
    /** Records the failure. Returns whether it differs from the one before. */
    const fail = (message: string): boolean => {
      const isNews = file.state.failure?.message !== message;
      file.observe({ kind: 'failed', message, nowMs: this.now() });
      return isNews;
    };
    if (code === 'ENOENT') {
      // The next survey finds out where it went.
      fail('it is not there');
      return;
    }
    const facts = { agent, file: file.path };
    if (isDenied(error) || isDenied((error as Error).cause)) {
      if (fail(describeSystemError(error, file.path).message)) this.#denied.push(file);
      return;
    }
    if (code === 'EMFILE' || code === 'ENFILE') {
      const isNews = fail('there are no file handles left') && !this.isShort;
      this.isShort = true;
      if (isNews)
        log.warn(
          facts,
          `there are too few file handles (ulimit -n) to read all logs at once: the logs are read in turns`,
        );
      return;
    }
    const { message } = error instanceof SourceError ? error : describeSystemError(error, file.path);
    if (fail(message)) log.warn(facts, message);
  }

  /**
   * Reports in one message the files without read permission: usually all of them lack the same right. Does not report
   * rotated files that are stored completely, as far as the checkpoints show without their content.
   */
  tellDenied(checkpoints: readonly Checkpoint[]): void {
    const denied = this.#denied.filter((file) => !checkpoints.some((known) => hasAllOf(known, file)));
    this.#denied = [];
    const [first] = denied;
    if (first === undefined) return;
    if (denied.length === 1) {
      this.log.warn({ agent: this.agent, file: first.path }, first.state.failure!.message);
      return;
    }
    const names = denied.map(({ path }) => basename(path));
    const shown = names.slice(0, namesShownMax).join(', ');
    this.log.warn(
      { agent: this.agent, folder: dirname(first.path), files: denied.length },
      `${denied.length} logs in ${dirname(first.path)} can't be read: user ${userName()} has no permission ` +
        `(${shown}${names.length > namesShownMax ? ', …' : ''})`,
    );
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(systemCode(error) ?? '');
}

/** Whether a rotated file is stored completely, as far as that shows without reading it. */
function hasAllOf(
  { inode, offset, packedBytes, path }: Checkpoint,
  { inode: ofFile, rotated, name, state }: FollowedFile,
): boolean {
  const { sizeBytes } = state.status;
  if (!rotated) return false;
  if (inode === ofFile) return offset === sizeBytes;
  return packedBytes === sizeBytes && basename(path).startsWith(basename(name.base));
}
