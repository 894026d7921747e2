import { isLogstrataError, type LogstrataError } from '../../terms/errors.js';
import type { AttachedFile } from './attached-file.js';
import { buildIndex, isIndexed, type IndexContext } from './build-index.js';

export interface IndexOptions {
  readonly signal?: AbortSignal | undefined;
  /** At most so many files are indexed; all if absent. */
  readonly filesMax?: number | undefined;
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
    readonly path: string;
    /** Of the file, of its decoded values, and of the index. */
    readonly bytes: number;
    readonly decodedBytes: number;
    readonly indexBytes: number;
  }[];
  /** The files that can't be indexed. They are answered all the same, or fail their queries. */
  readonly problems: readonly { readonly path: string; readonly error: LogstrataError }[];
  /** Files that are left to do. */
  readonly left: number;
}

/**
 * Indexes attached files one after another, those with the newest records first. Each is committed when it is done, so that what was done
 * stays when this is stopped. Throws the signal's reason, and what committing throws.
 */
export async function indexFiles(
  context: IndexContext,
  attached: readonly AttachedFile[],
  { signal, filesMax = Infinity, again = false, onProgress }: IndexOptions,
): Promise<IndexResult> {
  const newestFirst = (a: AttachedFile, b: AttachedFile) => (b.timeMaxMs ?? 0) - (a.timeMaxMs ?? 0);
  const missing = attached
    .filter((file) => again || !isIndexed(file, context.committer.schema))
    .sort(newestFirst);
  const chosen = missing.slice(0, filesMax);
  const bytes = chosen.reduce((sum, file) => sum + file.bytes, 0);
  const indexed: IndexResult['indexed'][number][] = [];
  const problems: IndexResult['problems'][number][] = [];
  let bytesDone = 0;
  for (const [filesDone, file] of chosen.entries()) {
    const { path } = file;
    signal?.throwIfAborted();
    const tell = (share: number) =>
      onProgress?.({
        path,
        filesDone,
        files: chosen.length,
        bytesDone: bytesDone + share * file.bytes,
        bytes,
      });
    tell(0);
    try {
      const { index, decodedBytes } = await buildIndex(context, file, (progress) => {
        signal?.throwIfAborted();
        tell(progress.bytesRead / Math.max(1, progress.bytes));
      });
      indexed.push({ path, bytes: file.bytes, decodedBytes, indexBytes: index.bytes });
    } catch (error) {
      if (!isFault(error)) throw error;
      problems.push({ path, error });
    }
    bytesDone += file.bytes;
  }
  return { indexed, problems, left: missing.length - indexed.length };
}

/** Whether the file is at fault, so that the others can go on. */
function isFault(error: unknown): error is LogstrataError {
  return isLogstrataError(error) && ['damaged', 'unsupported', 'limit', 'timeout', 'io'].includes(error.code);
}
