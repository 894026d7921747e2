/** A copy of all rows of a sealed segment's file in a cluster: the far tier. Rows of it that are not live here are not answered there either. */
export interface FarCopy {
  /** 16 hexadecimal digits that stay whatever becomes of attempts to ship the segment. */
  readonly unit: string;
  /** The attempt that is read, likewise. Rows of others count for nothing. */
  readonly attempt: string;
  /** Place of its shard in the configuration, from 0. */
  readonly shard: number;
  /** As they were counted on every replica. */
  readonly rows: number;
  /** Bytes that were sent for them. */
  readonly bytes: number;
  /** What the values of the rows add up to: see `FarChecksum`. */
  readonly checksum: string;
  /** When they were counted (ms). */
  readonly shippedMs: number;
  /** Whether the segment's file is no longer read here, so that these rows are the only ones. */
  readonly isOnly: boolean;
}

/** An attempt in a cluster that is read no more: its rows are to be dropped. */
export interface FarLeftover {
  readonly unit: string;
  readonly attempt: string;
  readonly shard: number;
  /** When it left the manifest (ms): queries that have begun before may still read it. */
  readonly sinceMs: number;
}
