import { FarCluster } from '../../store/far/far-cluster.js';
import type { FarSettings } from '../../store/far/far-place.js';
import type { FarPolicy } from './ship-policy.js';

/** How records are shipped to a far tier. */
export interface FarTierOptions {
  readonly policy: FarPolicy;
  /** Limit on the bytes sent per second. */
  readonly bytesPerSecond: number;
  /** Longest time of a query (ms). Rows that left the manifest longer ago are not read any more. */
  readonly longestQueryMs: number;
}

/** The far tier of an archive: the cluster, and how records are shipped there. */
export interface FarTier extends FarTierOptions {
  readonly cluster: FarCluster;
}

export interface FarTierSettings extends FarTierOptions {
  readonly servers: FarSettings;
}

/** Opens the far tier without contacting the servers. The caller closes the cluster. */
export async function openFarTier({ servers, ...options }: FarTierSettings): Promise<FarTier> {
  return { ...options, cluster: await FarCluster.open(servers) };
}
