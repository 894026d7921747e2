/**
 * A copy in the far tier (a cluster) of all rows of a sealed segment's file. Rows of it that are no longer live locally are not answered
 * from the copy either.
 */
export interface FarCopy {
  /** Id of the segment in the far tier, 16 hexadecimal digits. It is the same for all attempts to ship the segment. */
  readonly unit: string;
  /** Id of the attempt whose rows are read, 16 hexadecimal digits. Rows of other attempts are ignored. */
  readonly attempt: string;
  /** Index of its shard in the configuration, from 0. */
  readonly shard: number;
  /** Number of rows, as counted on every replica. */
  readonly rows: number;
  /** Bytes that were sent. */
  readonly bytes: number;
  /** Checksum of the rows' values: see `FarChecksum`. */
  readonly checksum: string;
  /** Time of the count (ms). */
  readonly shippedMs: number;
  /** Whether the local file is no longer read, so that the far tier has the only copy of these rows. */
  readonly isOnly: boolean;
}

/** One attempt to ship a segment. Its rows in the cluster carry `unit` and `attempt`. */
export type FarAttempt = Pick<FarCopy, 'unit' | 'attempt' | 'shard'>;

/** An attempt whose rows in the cluster are to be dropped, at once or if the attempt fails. */
export interface FarLeftover extends FarAttempt {
  /**
   * For an attempt under way, when it began (ms). Otherwise the time since which it cannot be a copy any more: queries that began before
   * may still read it.
   */
  readonly sinceMs: number;
  /** The segment that is shipped, while the attempt is under way. */
  readonly file?: string | undefined;
}
