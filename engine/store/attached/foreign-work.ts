import type {
  ForeignColumn,
  ForeignFile,
  ForeignFormat,
  ForeignPlace,
  ForeignRead,
} from '../../foreign/foreign-file.js';
import { describeForeignTask } from '../../foreign/reading/describe-task.js';
import { describedRanges, readRanges } from '../../foreign/reading/read-ranges.js';
import { LogstrataError } from '../../terms/errors.js';
import type { GuardedThread } from '../../workers/guarded-thread.js';
import type { Task } from '../../workers/task.js';
import type { ByteRange, ObjectStorage } from '../objects/object-storage.js';
import type { FileIdentity } from './attached-file.js';

/** Has a task done, on a thread where there are any. It reads at most `readBytes`. */
export type RunTask = <Job, Result>(task: Task<Job, Result>, job: Job, readBytes: number) => Promise<Result>;

/** What all work on files of other programs is done with. */
export interface ForeignMeans {
  /** For columns that are read the complete way, value by value. */
  readonly guard: GuardedThread;
  /** Where `s3://` paths lead; absent where there is none. */
  readonly objects?: ObjectStorage | undefined;
}

/** A file, and which version of it is wanted where it is an object. */
export interface ForeignVersion extends Pick<FileIdentity, 'etag' | 'bytes'> {
  readonly path: string;
}

/** A column of a file that a task reads. */
export interface ColumnOfFile {
  readonly file: ForeignVersion;
  readonly column: ForeignColumn;
  /** What it reads first; further readings are of the same row groups. */
  readonly reads: readonly ForeignRead[];
  /** Of an object: what is fetched along, because it is likely needed soon and lies near. */
  readonly beside?: readonly ByteRange[] | undefined;
}

/** Who does the work on files of other programs. */
export class ForeignWork {
  readonly #means: ForeignMeans;
  readonly #run: RunTask;

  /** @param run for all but the complete way: what takes linear time and bounded memory */
  constructor(means: ForeignMeans, run: RunTask) {
    this.#means = means;
    this.#run = run;
  }

  /** What a file says of itself. Throws as `readForeignFile` does. */
  describe(file: ForeignVersion, format: ForeignFormat): Promise<ForeignFile> {
    return withPlace(this.#means.objects, file, describedRanges(format, file.bytes), (place) =>
      this.#run(describeForeignTask, { ...place, format }, file.bytes),
    );
  }

  /** Has a task done that reads bytes of a file as they stand there. Throws what it throws. */
  readBytes<Job, Result>(
    task: Task<Job, Result>,
    jobOf: (place: ForeignPlace) => Job,
    file: ForeignVersion,
    ranges: readonly ByteRange[],
  ): Promise<Result> {
    return withPlace(this.#means.objects, file, ranges, (place) => this.#run(task, jobOf(place), file.bytes));
  }

  /** Has a task done that reads a column. Throws what it throws, and `limit` where that took too long or too much memory. */
  read<Job, Result>(
    task: Task<Job, Result>,
    jobOf: (place: ForeignPlace) => Job,
    { file, column, reads, beside = [] }: ColumnOfFile,
  ): Promise<Result> {
    const { path } = file;
    return withPlace(this.#means.objects, file, [...reads.flatMap(readRanges), ...beside], (place) => {
      if (column.way === 'fast') return this.#run(task, jobOf(place), file.bytes);
      const doing = `reading column "${column.name}" of ${path}`;
      return this.#means.guard.run(task, jobOf(place), { doing, path });
    });
  }
}

/** Has `use` work on a file where it is; of an object, on what is on this machine (`ObjectStorage.withBytes`). */
async function withPlace<T>(
  objects: ObjectStorage | undefined,
  { path, etag, bytes }: ForeignVersion,
  ranges: readonly ByteRange[],
  use: (place: ForeignPlace) => Promise<T>,
): Promise<T> {
  if (etag === undefined) return await use({ path });
  if (objects === undefined)
    throw new LogstrataError('invalid', `cannot read ${path}: no object storage is open`, { path });
  return await objects.withBytes({ path, etag, bytes }, ranges, use);
}
