import type { ForeignColumn, ForeignFile, ForeignFormat } from '../../foreign/foreign-file.js';
import { describeForeignTask } from '../../foreign/reading/describe-task.js';
import type { GuardedThread } from '../../workers/guarded-thread.js';
import type { Task } from '../../workers/task.js';

/** Has a task done, on a thread where there are any. */
export type RunTask = <Job, Result>(task: Task<Job, Result>, job: Job) => Promise<Result>;

/** Who does the work on files of other programs. */
export class ForeignWork {
  readonly #guard: GuardedThread;
  readonly #run: RunTask;

  /**
   * @param guard for columns that are read the complete way, value by value
   * @param run for all else, which takes linear time and bounded memory
   */
  constructor(guard: GuardedThread, run: RunTask) {
    this.#guard = guard;
    this.#run = run;
  }

  /** What a file says of itself. Throws as `readForeignFile` does. */
  describe(path: string, format: ForeignFormat): Promise<ForeignFile> {
    return this.#run(describeForeignTask, { path, format });
  }

  /** Has a task done that reads a column. Throws what it throws, and `limit` where that took too long or too much memory. */
  read<Job, Result>(
    task: Task<Job, Result>,
    job: Job,
    { path, column }: { readonly path: string; readonly column: ForeignColumn },
  ): Promise<Result> {
    if (column.way === 'fast') return this.#run(task, job);
    return this.#guard.run(task, job, { doing: `reading column "${column.name}" of ${path}`, path });
  }
}
