import { GuardedThread, type GuardLimits } from '../../workers/guarded-thread.js';
import type { DecodedSpans, ForeignFile, ForeignFormat, ForeignRead } from '../foreign-file.js';
import { decodeForeignTask } from './decode-task.js';
import { describeForeignTask } from './describe-task.js';

/**
 * Reads files of other programs on a guarded thread: what takes too long or too much memory is ended with `limit`, and named. Else methods
 * throw as `readForeignFile` and `decodeForeign` do.
 */
export class GuardedReader {
  readonly #thread: GuardedThread;

  constructor(limits: Partial<GuardLimits> = {}) {
    this.#thread = new GuardedThread(limits);
  }

  /** What a file says of itself. */
  describe(path: string, format: ForeignFormat): Promise<ForeignFile> {
    const work = { doing: `reading what ${path} says of itself`, path };
    return this.#thread.run(describeForeignTask, { path, format }, work);
  }

  /** The values of a column of a row group. */
  decode(read: ForeignRead): Promise<DecodedSpans> {
    const { path, column, rowGroup } = read;
    const work = { doing: `reading column "${column.name}" of row group ${rowGroup} of ${path}`, path };
    return this.#thread.run(decodeForeignTask, read, work);
  }

  /** Ends the thread. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
