/** Addresses of the HTTP interfaces of servers that have the same records. */
export type FarShard = readonly string[];

/** A cluster of ClickHouse servers. */
export interface FarSettings {
  /** Records say by number which shard they are in: further ones are added at the end. */
  readonly shards: readonly FarShard[];
  readonly database: string;
  readonly user: string;
  readonly password: string;
}
