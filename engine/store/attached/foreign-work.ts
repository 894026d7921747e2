import type { ForeignPlace } from '../../objects/object-blocks.js';
import type { ForeignColumn, ForeignFile, ForeignFormat, ForeignRead } from '../../foreign/foreign-file.js';
import { describeForeignTask } from '../../foreign/read-foreign.js';
import { describedRanges, readRanges } from '../../foreign/read-foreign.js';
import { LogstrataError } from '../../core/errors.js';
import { objectGapBytesMax, objectRequestBytesMax } from '../../core/limits.js';
import type { GuardedThread } from '../../workers/guarded-thread.js';
import type { Task } from '../../workers/task.js';
import type { ByteRange, ObjectStorage } from '../../objects/object-storage.js';
import type { FileIdentity } from './attached-list.js';

/** Runs a task, on a thread if there are any. It reads at most `readBytes`. */
export type RunTask = <Job, Result>(task: Task<Job, Result>, job: Job, readBytes: number) => Promise<Result>;

/** What work on files of other programs depends on. */
export interface ForeignMeans {
  /** Runs tasks for columns that are read in the complete way, value by value. */
  readonly guard: GuardedThread;
  /** Access to `s3://` paths; absent if none is configured. */
  readonly objects?: ObjectStorage | undefined;
}

/** A file. For an object, the version that is wanted. */
export interface ForeignVersion extends Pick<FileIdentity, 'etag' | 'bytes'> {
  readonly path: string;
}

/** A column of a file that a task reads. */
export interface ColumnOfFile {
  readonly file: ForeignVersion;
  readonly column: ForeignColumn;
  /** The first readings. Any further ones are of the same row groups. */
  readonly reads: readonly ForeignRead[];
  /** For an object: byte ranges near those of `reads` that are fetched with them because they are likely needed soon. */
  readonly beside?: readonly ByteRange[] | undefined;
}

/** Runs tasks on files of other programs: on the pool's threads, or on a guarded thread. */
export class ForeignWork {
  /** @param run runs all tasks except those of the complete way; they take linear time and bounded memory */
  constructor(
    private readonly means: ForeignMeans,
    private readonly run: RunTask,
  ) {}

  /** Reads a file's metadata. Throws as `readForeignFile` does. */
  describe(file: ForeignVersion, format: ForeignFormat): Promise<ForeignFile> {
    return withPlace(this.means.objects, file, describedRanges(format, file.bytes), (place) =>
      this.run(describeForeignTask, { ...place, format }, file.bytes),
    );
  }

  /** Runs a task that reads raw bytes of a file. Throws the task's errors. */
  readBytes<Job, Result>(
    task: Task<Job, Result>,
    jobOf: (place: ForeignPlace) => Job,
    file: ForeignVersion,
    ranges: readonly ByteRange[],
  ): Promise<Result> {
    return withPlace(this.means.objects, file, ranges, (place) => this.run(task, jobOf(place), file.bytes));
  }

  /**
   * Runs a task that reads a column. Throws the task's errors, and `limit` if it takes too much time or memory. Rows are read value by value, all
   * columns on one thread: more would take the memory of a page and of a decompressor each.
   */
  read<Job, Result>(
    task: Task<Job, Result>,
    jobOf: (place: ForeignPlace) => Job,
    { file, column, reads, beside = [] }: ColumnOfFile,
  ): Promise<Result> {
    const { path } = file;
    return withPlace(this.means.objects, file, [...reads.flatMap(readRanges), ...beside], (place) => {
      const isGuarded = column.way !== 'fast' || reads.some(({ rows }) => rows !== undefined);
      if (!isGuarded) return this.run(task, jobOf(place), file.bytes);
      const doing = `reading column "${column.name}" of ${path}`;
      return this.means.guard.run(task, jobOf(place), { doing, path });
    });
  }
}

/** Calls `use` with the place of a file. For an object that is its blocks on the local disk (`ObjectStorage.withBytes`). */
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

/**
 * Byte ranges of the same column in neighbouring row groups, as far as they fit into one request. Otherwise each small row group of an
 * object would take a request of its own, and a query that needs one mostly needs its neighbours too.
 */
export function nearChunks({ rowGroups }: ForeignFile, columnIndex: number, rowGroup: number): ByteRange[] {
  const found: ByteRange[] = [];
  const rangeOf = (index: number): ByteRange | null => {
    const chunk = rowGroups[index]?.chunks[columnIndex];
    return chunk === undefined || chunk.bytes === 0
      ? null
      : { from: chunk.offset, to: chunk.offset + chunk.bytes };
  };
  const own = rangeOf(rowGroup);
  if (own === null) return [];
  let { from, to } = own;
  // Preceding row groups first: the newest rows are queried most and are mostly at the end of a file.
  for (const step of [-1, 1]) {
    for (let index = rowGroup + step; ; index += step) {
      const other = rangeOf(index);
      if (other === null) break;
      const gap = step < 0 ? from - other.to : other.from - to;
      const bytes = Math.max(to, other.to) - Math.min(from, other.from);
      if (gap < 0 || gap > objectGapBytesMax || bytes > objectRequestBytesMax) break;
      found.push(other);
      from = Math.min(from, other.from);
      to = Math.max(to, other.to);
    }
  }
  return found;
}
