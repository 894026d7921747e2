import { mapInOrder } from '../../workers/in-order.js';
import { isLogstrataError, LogstrataError } from '../../core/errors.js';
import type {
  AttachedFile,
  FilePlan,
  FileToAttach,
  AttachingCommitter,
  MovedFile,
  RemadeFile,
} from './attached-list.js';
import type { ForeignWork } from './foreign-work.js';
import { planFile } from './plan-file.js';

/** Changes to the files that an agent answers in place. */
export interface AttachRequest {
  readonly adds: readonly FileToAttach[];
  readonly moves: readonly MovedFile[];
  /** Ids of attached files. */
  readonly removes: readonly string[];
  readonly remakes?: readonly RemadeFile[] | undefined;
  /** Whether nothing is changed where one of `adds` can't be attached: other files hold the same rows until then. */
  readonly isWhole?: boolean | undefined;
}

export interface AttachOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each file that was read. */
  readonly onProgress?: ((filesRead: number, files: number) => void) | undefined;
}

export interface AttachResult {
  readonly attached: readonly AttachedFile[];
  /** The files that cannot be attached. */
  readonly problems: readonly { readonly path: string; readonly error: LogstrataError }[];
}

/** What attaching files depends on. */
export interface AttachContext {
  readonly committer: AttachingCommitter;
  readonly now: () => number;
  readonly work: ForeignWork;
  /** Number of files that are read at once. */
  readonly filesAtOnce: number;
}

/**
 * Reads the files, and commits all of them in one manifest, in order. A file that cannot be read is left out and returned as a problem.
 * Throws the errors of the commit; nothing is changed then.
 */
export async function attachFiles(
  { committer, now, work, filesAtOnce }: AttachContext,
  { adds, moves, removes, remakes = [], isWhole }: AttachRequest,
  { signal, onProgress }: AttachOptions,
): Promise<AttachResult> {
  const { schema } = committer;
  const nowMs = now();
  let filesRead = 0;
  const plans = await mapInOrder(adds, filesAtOnce, async (file) => {
    signal?.throwIfAborted();
    const plan = await planOrProblem(() => planFile(file, schema, nowMs, work));
    onProgress?.(++filesRead, adds.length);
    return plan;
  });
  const read = plans.filter((plan): plan is FilePlan => !(plan instanceof Error));
  const problems = plans.flatMap((plan, i) =>
    plan instanceof Error ? [{ path: adds[i]!.path, error: plan }] : [],
  );
  const isEmpty = read.length + moves.length + removes.length + remakes.length === 0;
  if (isEmpty || (isWhole === true && problems.length > 0)) return { attached: [], problems };
  const { added, refused } = await committer.attach({ adds: read, moves, removes, remakes });
  problems.push(...refused.map((path) => ({ path, error: tooScattered(path) })));
  return { attached: added, problems };
}

function tooScattered(path: string): LogstrataError {
  const message =
    `the rows of ${path} are not sorted by time: together with the other files they spread over more hours than can be indexed. ` +
    'Sort its rows by time';
  return new LogstrataError('limit', message, { path });
}

async function planOrProblem(read: () => Promise<FilePlan>): Promise<FilePlan | LogstrataError> {
  try {
    return await read();
  } catch (error) {
    if (isLogstrataError(error)) return error;
    throw error;
  }
}
