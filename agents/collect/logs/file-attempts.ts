import { basename, dirname } from 'node:path';
import type { Checkpoint } from '../../../engine/index.js';
import { describeSystemError, SourceError, systemCode, userName } from '../../sources/source-error.js';
import type { CollectLog } from './collect-log.js';
import type { FollowedFile } from './followed-file.js';
import type { OpenFiles } from './open-files.js';

/** Names that one message has. */
const namesShownMax = 3;

/** Keeps what fails with one file from the others: it is told once, and the file is tried again later. */
export class FileAttempts {
  /** Files that may not be read, which `tellDenied` has not told yet. */
  #denied: FollowedFile[] = [];
  /** It was said that file handles are short. */
  private isShort = false;

  constructor(
    private readonly agent: string,
    private readonly handles: OpenFiles,
    private readonly now: () => number,
    private readonly log: CollectLog,
  ) {}

  /** Runs what concerns one file. Throws what is no failure of the file. */
  async run(file: FollowedFile, attempt: () => Promise<void>): Promise<void> {
    try {
      await attempt();
      const hadFailed = file.state.failure !== null;
      file.observe({ kind: 'succeeded' });
      if (hadFailed) this.log.info({ agent: this.agent, file: file.path }, 'a log can be read again');
    } catch (error) {
      const code = systemCode(error);
      if (!(error instanceof SourceError) && code === undefined) throw error;
      await this.handles.release(file);
      this.tell(file, error, code);
    }
  }

  private tell(file: FollowedFile, error: unknown, code: string | undefined): void {
    const { agent, log } = this;
    /** Notes the failure. Returns whether it is another one than before. */
    const fail = (message: string): boolean => {
      const isNews = file.state.failure?.message !== message;
      file.observe({ kind: 'failed', message, nowMs: this.now() });
      return isNews;
    };
    if (code === 'ENOENT') {
      // Looking at the folder tells where it went.
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
          `there are too few file handles (ulimit -n) to read all logs at once: they take turns`,
        );
      return;
    }
    const { message } = error instanceof SourceError ? error : describeSystemError(error, file.path);
    if (fail(message)) log.warn(facts, message);
  }

  /**
   * Tells in one message which files may not be read: where a right is missing, it is missing of all of them. Rotated ones of which all is stored, as
   * the checkpoints tell without their content, miss nothing.
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

/** Whether all that a rotated file has is stored, as far as that shows without reading it. */
function hasAllOf(
  { inode, offset, packedBytes, path }: Checkpoint,
  { inode: ofFile, rotated, name, state }: FollowedFile,
): boolean {
  const { sizeBytes } = state.status;
  if (!rotated) return false;
  if (inode === ofFile) return offset === sizeBytes;
  return packedBytes === sizeBytes && basename(path).startsWith(name.base);
}
