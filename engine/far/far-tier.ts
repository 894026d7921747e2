import type {
  AgentToShip,
  BackgroundShipping,
  FarReport,
  FetchResult,
  FetchWish,
  ShipOptions,
  ShippingOptions,
  ShipResult,
  Tier,
} from '../archive/shipping.js';
import type { AgentState } from '../store/reading/agent-state.js';
import { FarBackground } from './far-background.js';
import { FarCluster } from './far-cluster.js';
import { FarRows } from './far-reader.js';
import type { FarSettings } from './far-transport.js';
import { fetchUnits } from './fetch-units.js';
import { shipAgent, type FarPolicy, type ShippingMeans } from './ship-agent.js';
import { verifyFar } from './verify-far.js';

/** The far tier of an archive: the cluster, and how records are shipped there. */
export class FarTier implements Tier, ShippingMeans {
  readonly cluster: FarCluster;
  readonly policy: FarPolicy;
  readonly bytesPerSecond: number;
  readonly longestQueryMs: number;
  readonly rows: FarRows;

  constructor({ cluster, policy, bytesPerSecond, longestQueryMs }: ShippingMeans) {
    this.cluster = cluster;
    this.policy = policy;
    this.bytesPerSecond = bytesPerSecond;
    this.longestQueryMs = longestQueryMs;
    this.rows = new FarRows(() => cluster);
  }

  ship(agent: AgentToShip, options: ShipOptions = {}): Promise<ShipResult> {
    return shipAgent(agent, this, options);
  }

  fetch(agent: AgentToShip, wish: FetchWish, options: ShipOptions = {}): Promise<FetchResult> {
    return fetchUnits(agent, this.cluster, wish, options);
  }

  verify(state: AgentState, options: ShipOptions = {}): Promise<FarReport> {
    return verifyFar(state, this.cluster, options);
  }

  background(options: ShippingOptions): BackgroundShipping {
    return new FarBackground(this, options);
  }
}

export interface FarTierSettings extends Omit<ShippingMeans, 'cluster'> {
  readonly servers: FarSettings;
}

/** Opens the far tier without contacting the servers. The caller closes the cluster. */
export async function openFarTier({ servers, ...options }: FarTierSettings): Promise<FarTier> {
  return new FarTier({ ...options, cluster: await FarCluster.open(servers) });
}
