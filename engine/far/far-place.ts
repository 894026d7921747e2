/** URLs of the HTTP interfaces of the replicas of a shard. */
export type FarShard = readonly string[];

/** A cluster of ClickHouse servers, and how to log in. */
export interface FarSettings {
  /** Manifests refer to shards by index, so new shards are only appended. */
  readonly shards: readonly FarShard[];
  readonly database: string;
  readonly user: string;
  readonly password: string;
}
