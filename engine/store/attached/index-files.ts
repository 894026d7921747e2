import { isLogstrataError, type LogstrataError } from '../../terms/errors.js';
import { everyStep } from '../../terms/every-step.js';
import { attachedFilesOfListMax } from '../../terms/limits.js';
import type { AttachedFile } from './attached-file.js';
import { IndexBatch, isIndexed, type IndexContext } from './build-index.js';

/** How often what was indexed is committed. */
const commitIntervalMs = 5000;

export interface IndexOptions {
  readonly signal?: AbortSignal | undefined;
  /** At most so many files are indexed; all if absent. */
  readonly filesMax?: number | undefined;
  /** Ids of files that are passed over. */
  readonly except?: ReadonlySet<string> | undefined;
  /** Those that have an index get a new one. */
  readonly again?: boolean | undefined;
  readonly onProgress?: ((progress: IndexingProgress) => void) | undefined;
}

export interface IndexingProgress {
  /** The file that is read. */
  readonly path: string;
  /** Files that are done, and all that are to be indexed. */
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
    /** Of the file, of its decoded values, and of the index. */
    readonly bytes: number;
    readonly decodedBytes: number;
    readonly indexBytes: number;
  }[];
  /** The files that can't be indexed. They are answered all the same, or fail their queries. */
  readonly problems: readonly {
    readonly id: string;
    readonly path: string;
    readonly error: LogstrataError;
  }[];
  /** Files that are left to do, without those that were passed over or can't be indexed. */
  readonly left: number;
}

/** While the index of one file is written and made durable, columns of the other are read, so that threads always have work. */
const filesAtOnce = 2;

/**
 * Indexes attached files, those with the newest records first, two at once. They are committed every few seconds, and when this is
 * stopped, so that what was done stays. Throws the signal's reason, and what committing throws.
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
        // Jobs that it dropped fail in words of their own.
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

/** Files of which the next are indexed until all are. */
class Indexing {
  readonly indexed: IndexResult['indexed'][number][] = [];
  readonly problems: IndexResult['problems'][number][] = [];
  readonly #files: readonly AttachedFile[];
  readonly #tell: (progress: IndexingProgress) => void;
  readonly #bytes: number;
  /** Of files that are done. */
  #bytesDone = 0;
  #filesDone = 0;
  #next = 0;
  /** Of each file that is read: the bytes that are done. */
  readonly #underWay = new Map<AttachedFile, number>();

  /** @param tell may throw, which ends all that is under way */
  constructor(files: readonly AttachedFile[], tell: (progress: IndexingProgress) => void) {
    this.#files = files;
    this.#tell = tell;
    this.#bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  }

  get isLeft(): boolean {
    return this.#next < this.#files.length;
  }

  /** Adds one file after another to a batch, until it is full or the time is over. Throws what is no fault of a file. */
  async fill(batch: IndexBatch, endMs: number): Promise<void> {
    while (this.isLeft && batch.files < attachedFilesOfListMax && performance.now() <= endMs) {
      const file = this.#files[this.#next++]!;
      try {
        await this.#add(batch, file);
      } catch (error) {
        // Who adds files beside ends with the one that is under way.
        this.#next = this.#files.length;
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
    this.#underWay.set(file, share * file.bytes);
    const bytesDone = [...this.#underWay.values()].reduce((sum, done) => sum + done, this.#bytesDone);
    const { length: files } = this.#files;
    this.#tell({ path: file.path, filesDone: this.#filesDone, files, bytesDone, bytes: this.#bytes });
  }
}

/** Whether the file is at fault, so that the others can go on. */
function isFault(error: unknown): error is LogstrataError {
  return isLogstrataError(error) && ['damaged', 'unsupported', 'limit', 'timeout', 'io'].includes(error.code);
}
