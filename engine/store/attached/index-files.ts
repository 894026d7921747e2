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

/**
 * Indexes attached files one after another, those with the newest records first. They are committed every few seconds, and when this is
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
  const bytes = chosen.reduce((sum, file) => sum + file.bytes, 0);
  const indexed: IndexResult['indexed'][number][] = [];
  const problems: IndexResult['problems'][number][] = [];
  let bytesDone = 0;
  let next = 0;
  while (next < chosen.length) {
    const batch = await IndexBatch.begin(context);
    try {
      for (const endMs = performance.now() + commitIntervalMs; next < chosen.length; next++) {
        if (batch.files >= attachedFilesOfListMax || performance.now() > endMs) break;
        const file = chosen[next]!;
        const { id, path } = file;
        const tell = (share: number): void => {
          signal?.throwIfAborted();
          const done = { filesDone: next, bytesDone: bytesDone + share * file.bytes };
          onProgress?.({ path, files: chosen.length, bytes, ...done });
        };
        tell(0);
        try {
          const { index, decodedBytes } = await batch.add(file, (progress) =>
            tell(progress.bytesRead / Math.max(1, progress.bytes)),
          );
          indexed.push({ id, path, bytes: file.bytes, decodedBytes, indexBytes: index.bytes });
        } catch (error) {
          if (!isFault(error)) throw error;
          problems.push({ id, path, error });
        }
        bytesDone += file.bytes;
      }
    } finally {
      await everyStep([() => batch.commit(), () => batch.end()]);
    }
  }
  return { indexed, problems, left: missing.length - chosen.length };
}

/** Whether the file is at fault, so that the others can go on. */
function isFault(error: unknown): error is LogstrataError {
  return isLogstrataError(error) && ['damaged', 'unsupported', 'limit', 'timeout', 'io'].includes(error.code);
}
