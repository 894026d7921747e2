import type { Side, SideOptions } from '../side.js';
import { ClickHouseSide } from './clickhouse.js';
import { DuckDbSide } from './duckdb.js';
import { InPlaceSide } from './in-place.js';
import { LogstrataSide } from './logstrata.js';
import { RipgrepSide } from './ripgrep.js';
import { SqliteSide } from './sqlite.js';

/** Makes the side of the given name, without opening or loading anything. */
export function makeSide(options: SideOptions): Side {
  switch (options.side) {
    case 'logstrata':
    case 'logstrata-unindexed':
    case 'logstrata-zstd':
      return new LogstrataSide(options);
    case 'duckdb':
    case 'duckdb-parquet':
    case 'duckdb-parquet-bloom':
    case 'duckdb-our-parquet':
    case 'duckdb-files':
      return new DuckDbSide(options);
    case 'logstrata-in-place':
    case 'logstrata-in-place-indexed':
      return new InPlaceSide(options);
    case 'clickhouse':
    case 'clickhouse-zstd':
    case 'clickhouse-indexed':
    case 'clickhouse-files':
      return new ClickHouseSide(options);
    case 'sqlite':
    case 'sqlite-indexed':
      return new SqliteSide(options);
    case 'ripgrep':
      return new RipgrepSide(options);
  }
}
