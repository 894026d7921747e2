import { closing } from '../core/waiting.js';
import { FarCluster } from './far-cluster.js';
import type { FarSettings } from './far-transport.js';
import { openRealDirectory } from '../store/disk/real-directory.js';
import type { FarAttempt, SegmentEntry } from '../store/manifest/manifest.js';
import type { Schema } from '../core/schema.js';
import { taskIn, type Finished } from '../workers/task.js';
import { shipSegment, type ShippedRows } from './ship-segment.js';

/** A segment of the data folder at `location` to be shipped. */
export interface LocatedShipping {
  readonly location: string;
  readonly settings: FarSettings;
  readonly agent: string;
  readonly entry: SegmentEntry;
  readonly schema: Schema;
  readonly attempt: FarAttempt;
  readonly bytesPerSecond: number;
}

/** Ships a segment. */
export async function work(job: LocatedShipping): Promise<Finished<ShippedRows>> {
  const { location, settings, agent, entry, schema, attempt, bytesPerSecond } = job;
  const directory = await openRealDirectory(location);
  return closing(FarCluster.open(settings), async (cluster) => {
    const context = { directory, cluster, agent, schema, bytesPerSecond };
    return { result: await shipSegment(context, entry, attempt), transfer: [] };
  });
}

/** Ships a segment on one thread, including reading and encoding, so that no query waits for it. */
export const shipTask = taskIn(import.meta.url, { work }, true);
