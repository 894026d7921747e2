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

/** One try to ship a segment: its rows in the cluster carry the first two numbers. */
export type FarAttempt = Pick<FarCopy, 'unit' | 'attempt' | 'shard'>;

/** An attempt whose rows in a cluster are to be dropped, or would be if it came to nothing. */
export interface FarLeftover extends FarAttempt {
  /** Since when it can't count (any more), in ms: queries that have begun before may still read it. Of one under way, when it began. */
  readonly sinceMs: number;
  /** The segment that is shipped, where the attempt may still come to count. */
  readonly file?: string | undefined;
}
