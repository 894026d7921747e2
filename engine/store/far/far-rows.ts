import type { Schema } from '../../terms/schema.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { FarCluster } from './far-cluster.js';

/** Where rows are that are in no file of ours: whoever reads them asks the cluster for them. */
export interface FarRows {
  readonly agent: string;
  readonly copy: FarCopy;
  /** The fields that they were shipped with. */
  readonly stored: Schema;
  /** The same for rows that one question can ask for: those of one shard and one set of fields. */
  readonly group: string;
  /** Throws `unavailable` where no far tier is configured. */
  cluster(): FarCluster;
}
