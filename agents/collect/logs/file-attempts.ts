import { describeSystemError, SourceError, systemCode } from '../../sources/source-error.js';
import type { CollectLog } from './collect-log.js';
import type { FollowedFile } from './followed-file.js';
import type { OpenFiles } from './open-files.js';

/** Keeps what fails with one file from the others: it is told once, and the file is tried again later. */
export class FileAttempts {
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
}
