import type { Directory } from '../store/disk/directory.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { Codec } from '../parquet/compression.js';
import type { Schema } from '../terms/schema.js';

export interface RepairContext {
  readonly directory: Directory;
  readonly agent: string;
  /** Name of the unit of work that new segments are built in. */
  readonly id: string;
  readonly now: () => number;
  readonly codec: Codec;
  readonly workers: WorkerPool;
}

export interface RepairOptions {
  /** Asks whether files that no manifest lists are to be taken in. What is refused is put aside. */
  readonly adopt: (files: readonly string[]) => Promise<boolean>;
  /** The agent's fields as they are configured; needed only where no file tells. */
  readonly schema?: Schema | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((fraction: number) => void) | undefined;
}
