import type { SegmentEntry } from '../store/manifest/manifest.js';
import { openRealDirectory } from '../store/disk/real-directory.js';
import { taskIn, type Finished } from '../workers/task.js';
import { WorkerPool } from '../workers/worker-pool.js';
import { rewriteSegments, type RewriteJob } from './rewrite.js';

/** A rewrite in the data folder at `location`. */
export interface LocatedRewrite {
  readonly location: string;
  readonly job: RewriteJob;
}

/** Rewrites segments. */
export async function work({ location, job }: LocatedRewrite): Promise<Finished<readonly SegmentEntry[]>> {
  const directory = await openRealDirectory(location);
  const result = await rewriteSegments({ directory, workers: new WorkerPool(0) }, job);
  return { result, transfer: [] };
}

/** Runs a whole rewrite on one thread, including reading and decoding, so that no query waits for it. */
export const rewriteTask = taskIn(import.meta.url, { work });
