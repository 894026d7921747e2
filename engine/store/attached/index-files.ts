import { isLogstrataError, type LogstrataError } from '../../core/errors.js';
import { everyStep } from '../../core/waiting.js';
import { attachedFilesOfListMax } from '../../core/limits.js';
import type { AttachedFile } from './attached-list.js';
import { IndexBatch, isIndexed, type IndexContext } from './build-index.js';

/** Interval (ms) between commits of finished indexes. */
const commitIntervalMs = 5000;

export interface IndexOptions {
  readonly signal?: AbortSignal | undefined;
  /** Maximum number of files to index; all if absent. */
  readonly filesMax?: number | undefined;
  /** Ids of files to skip. */
  readonly except?: ReadonlySet<string> | undefined;
  /** Whether files that have an index are indexed again. */
  readonly again?: boolean | undefined;
  readonly onProgress?: ((progress: IndexingProgress) => void) | undefined;
}

/** Progress of `indexFiles`. */
export interface IndexingProgress {
  /** The file that is being read. */
  readonly path: string;
  /** Number of finished files, and of all files to index. */
  readonly filesDone: number;
  readonly files: number;
  /** Bytes of those files. */
  readonly bytesDone: number;
  readonly bytes: number;
}

export interface IndexResult {
  readonly indexed: readonly {
    readonly id: string;
    readonly path: string;
    /** Bytes of the file, of its decoded values, and of the index. */
    readonly bytes: number;
    readonly decodedBytes: number;
    readonly indexBytes: number;
  }[];
  /** The files that could not be indexed. Queries read them without an index, or fail. */
  readonly problems: readonly {
    readonly id: string;
    readonly path: string;
    readonly error: LogstrataError;
  }[];
  /** Number of files that still need an index, without those that were skipped or failed. */
  readonly left: number;
}

/** While the index of one file is written and synced, columns of the other file are read, so that the threads always have work. */
const filesAtOnce = 2;

/**
 * Indexes attached files, the newest records first, two files at a time. Finished indexes are committed every few seconds and when the work
 * is aborted. Throws the signal's reason, and the errors of the commit.
 */
export async function indexFiles(
  context: IndexContext,
  attached: readonly AttachedFile[],
  { signal, filesMax = Infinity, except, again = false, onProgress }: IndexOptions,
): Promise<IndexResult> {
  const newestFirst = (a: AttachedFile, b: AttachedFile) => (b.timeMaxMs ?? 0) - (a.timeMaxMs ?? 0);
  const missing = attached
    .filter((file) => except?.has(file.id) !== true)
    .filter((file) => again || !isIndexed(file, context.committer.schema))
    .sort(newestFirst);
  const chosen = missing.slice(0, filesMax);
  const indexing = new Indexing(chosen, (progress) => {
    signal?.throwIfAborted();
    onProgress?.(progress);
  });
  while (indexing.isLeft) {
    const batch = await IndexBatch.begin(context);
    try {
      const endMs = performance.now() + commitIntervalMs;
      const some = () => indexing.fill(batch, endMs);
      const ends = await Promise.allSettled(Array.from({ length: filesAtOnce }, some));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed !== undefined) {
        // Report the abort itself: aborted jobs fail with other errors.
        signal?.throwIfAborted();
        throw failed.reason;
      }
    } finally {
      await everyStep([() => batch.commit(), () => batch.end()]);
    }
  }
  const { indexed, problems } = indexing;
  return { indexed, problems, left: missing.length - chosen.length };
}

/** The queue of files to index, with its progress. */
class Indexing {
  readonly indexed: IndexResult['indexed'][number][] = [];
  readonly problems: IndexResult['problems'][number][] = [];
  readonly #bytes: number;
  /** Bytes of the finished files. */
  #bytesDone = 0;
  #filesDone = 0;
  #next = 0;
  /** Bytes done of each file that is being read. */
  readonly #underWay = new Map<AttachedFile, number>();

  /** @param tell reports progress; if it throws, the indexing ends */
  constructor(
    private readonly files: readonly AttachedFile[],
    private readonly tell: (progress: IndexingProgress) => void,
  ) {
    this.#bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  }

  get isLeft(): boolean {
    return this.#next < this.files.length;
  }

  /** Adds files to a batch, one after another, until the batch is full or the time is over. Throws errors that are no fault of a file. */
  async fill(batch: IndexBatch, endMs: number): Promise<void> {
    while (this.isLeft && batch.files < attachedFilesOfListMax && performance.now() <= endMs) {
      const file = this.files[this.#next++]!;
      try {
        await this.#add(batch, file);
      } catch (error) {
        // Make the other concurrent calls stop after their current file.
        this.#next = this.files.length;
        throw error;
      } finally {
        this.#underWay.delete(file);
      }
      this.#bytesDone += file.bytes;
      this.#filesDone++;
    }
  }

  async #add(batch: IndexBatch, file: AttachedFile): Promise<void> {
    const { id, path } = file;
    this.#progress(file, 0);
    try {
      const { index, decodedBytes } = await batch.add(file, ({ bytesRead, bytes }) =>
        this.#progress(file, bytesRead / Math.max(1, bytes)),
      );
      this.indexed.push({ id, path, bytes: file.bytes, decodedBytes, indexBytes: index.bytes });
    } catch (error) {
      if (!isFault(error)) throw error;
      this.problems.push({ id, path, error });
    }
  }

  #progress(file: AttachedFile, share: number): void {
    // Whole bytes: sums of fractions depend on their order by a rounding, and the progress would seem to fall.
    this.#underWay.set(file, Math.floor(share * file.bytes));
    const bytesDone = [...this.#underWay.values()].reduce((sum, done) => sum + done, this.#bytesDone);
    const { length: files } = this.files;
    this.tell({ path: file.path, filesDone: this.#filesDone, files, bytesDone, bytes: this.#bytes });
  }
}

/** Whether the error is the file's fault, so that other files can still be indexed. */
function isFault(error: unknown): error is LogstrataError {
  return isLogstrataError(error) && ['damaged', 'unsupported', 'limit', 'timeout', 'io'].includes(error.code);
}
