import { FarCluster } from '../../store/far/far-cluster.js';
import type { FarSettings } from '../../store/far/far-place.js';
import type { FarPolicy } from './ship-policy.js';

/** How records come to a far tier. */
export interface FarTierOptions {
  readonly policy: FarPolicy;
  /** The most that shipping sends in a second. */
  readonly bytesPerSecond: number;
  /** What left the manifest longer ago than this is read by no query any more. */
  readonly longestQueryMs: number;
}

/** The far tier of an archive: where it is, and how records come there. */
export interface FarTier extends FarTierOptions {
  readonly cluster: FarCluster;
}

export interface FarTierSettings extends FarTierOptions {
  readonly servers: FarSettings;
}

/** Nothing is asked of the servers yet. The caller closes the cluster. */
export async function openFarTier({ servers, ...options }: FarTierSettings): Promise<FarTier> {
  return { ...options, cluster: await FarCluster.open(servers) };
}
