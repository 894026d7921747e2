import type { Directory } from '../store/disk/directory.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { Codec } from '../parquet/compression.js';
import type { Schema } from '../terms/schema.js';

export interface RepairContext {
  readonly directory: Directory;
  readonly agent: string;
  /** Id of the unit of work that builds new segments. */
  readonly id: string;
  readonly now: () => number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

export interface RepairOptions {
  /** Asked whether files that no manifest lists are to be adopted. If refused, they are put into quarantine. */
  readonly adopt: (files: readonly string[]) => Promise<boolean>;
  /** The agent's configured schema. Needed only if no file has one. */
  readonly schema?: Schema | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
