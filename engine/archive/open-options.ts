import { totalmem } from 'node:os';
import {
  graceMsDefault,
  poolBytesMax,
  poolMemoryShareDefault,
  queryTimeoutMsDefault,
  zstdAfterMsDefault,
} from '../core/limits.js';
import type { RetentionEvent } from '../store/manifest/retention-policy.js';
import type { ObjectStorage } from '../objects/object-storage.js';
import type { FarEvent, Tier } from './shipping.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { Codec } from '../parquet/compression.js';

/** The bound on decoded columns unless it is configured: a share of the memory that this process may use. */
export function poolBytesDefault(): number {
  // Without a limit on the process this is 0, or larger than any memory.
  const constrainedBytes = process.constrainedMemory();
  const memoryBytes = constrainedBytes > 0 ? Math.min(constrainedBytes, totalmem()) : totalmem();
  return Math.min(poolBytesMax, Math.floor(memoryBytes * poolMemoryShareDefault));
}

export interface OpenOptions {
  /** `write`: commit, as the writer or through it. `read`: follow whatever the writer publishes. */
  readonly mode: 'write' | 'read';
  /** What this process is, for the messages of others: `serve`, `load`, … Two of role `serve` exclude each other. */
  readonly role: string;
  /** Other processes are refused while this one writes: what it does to the folder leaves nothing of what they know. */
  readonly alone?: boolean;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
  readonly codec?: Codec;
  /** Bound on the decoded columns kept in memory; the default is a quarter of it, and more than 3.5 GiB can't be reached. */
  readonly cacheBytes?: number;
  /** Threads that encode row groups; the caller closes it. By default the archive has a pool of its own. */
  readonly workers?: WorkerPool;
  /** Where old records are, and go; the caller closes its cluster. */
  readonly far?: Tier;
  /** Where `s3://` paths lead; the caller closes it. */
  readonly objects?: ObjectStorage;
  /** How late a live record may be before it counts as history. */
  readonly graceMs?: number;
  /** Removed files stay this long for the readers of other processes: the longest query time. */
  readonly removalDelayMs?: number;
  /** Age of a day, counted from its end, at which its segments get ZSTD; null for never. */
  readonly zstdAfterMs?: number | null;
  /** As the writer, compact and retire: by itself, on a thread, with 1; with 0 only when asked (`compactNext`, `retireNow`). */
  readonly background?: { readonly threads: 0 | 1 };
  /** Gets a sentence for the operator: damage found, another writer, … */
  readonly onWarning?: (message: string) => void;
  /** Have threads begun, and a few queries answered, before a user asks: for a process that goes on answering. */
  readonly anticipates?: boolean;
  /** Told of every take-away of retention, and of policies that change. */
  readonly onRetention?: (event: RetentionEvent) => void;
  /** Told of every segment that was shipped to the far tier. */
  readonly onShipped?: (event: FarEvent) => void;
}

/** The options that an archive goes by all its life, with their defaults. */
export interface Settings {
  readonly mode: 'write' | 'read';
  readonly role: string;
  readonly alone: boolean;
  readonly now: () => number;
  readonly codec: Codec;
  readonly graceMs: number;
  readonly removalDelayMs: number;
  readonly zstdAfterMs: number | null;
  readonly anticipates: boolean;
  readonly onWarning: (message: string) => void;
  readonly onRetention: (event: RetentionEvent) => void;
  readonly onShipped: (event: FarEvent) => void;
}

/**
 * Fills in the defaults. Positions begin with the first hour of 1970: a clock that says an earlier time, as that of a machine whose battery
 * is empty may, is taken for that hour.
 */
export function settingsOf(options: OpenOptions): Settings {
  const { now = Date.now } = options;
  return {
    alone: false,
    anticipates: false,
    codec: 'lz4',
    graceMs: graceMsDefault,
    removalDelayMs: queryTimeoutMsDefault,
    zstdAfterMs: zstdAfterMsDefault,
    onWarning: () => {},
    onRetention: () => {},
    onShipped: () => {},
    ...options,
    now: () => Math.max(1, now()),
  };
}
