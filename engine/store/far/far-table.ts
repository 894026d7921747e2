import type { Schema } from '../../terms/schema.js';
import { columnOfField, quotedName, textLiteral, typeOfField } from './far-sql.js';
import type { FarSettings } from './far-place.js';

/** First major version of ClickHouse that supports column codecs and data-skipping indexes. */
const modernVersion = 21;

/** The quoted name of an agent's table: its database is configured, and the table is named like the agent. */
export function tableName({ database }: Pick<FarSettings, 'database'>, agent: string): string {
  return `${quotedName(database)}.${quotedName(agent)}`;
}

/** What the statements for a table depend on: the agent, and the server that gets the table. */
export interface TableWish {
  readonly settings: FarSettings;
  readonly agent: string;
  readonly schema: Schema;
  readonly shard: number;
  readonly replica: number;
  /** Major version of the server. */
  readonly version: number;
}

/** Statements that create a table with all columns, and those that add each column to an existing table. */
export interface TableStatements {
  readonly make: readonly string[];
  readonly columns: readonly { readonly name: string; readonly add: readonly string[] }[];
}

/**
 * The statements for an agent's table. Each attempt is a partition, so that it can be dropped as a whole and its rows be counted in
 * `system.parts`. Rows are ordered by position. On modern versions texts have Bloom filters of whole values.
 */
export function tableStatements(wish: TableWish): TableStatements {
  const { settings, agent, schema, version } = wish;
  const table = tableName(settings, agent);
  const isModern = version >= modernVersion;
  const codec = isModern ? ' CODEC(ZSTD(1))' : '';
  const own = [
    `_cursor UInt64${isModern ? ' CODEC(Delta, ZSTD(1))' : ''}`,
    `_unit UInt64${codec}`,
    `_attempt UInt64${codec}`,
  ];
  const columns = schema.fields.map((field) => {
    const name = columnOfField(field);
    const column = `${quotedName(name)} ${typeOfField(field)}${codec}`;
    const isIndexed = isModern && field.type === 'string';
    const type = 'TYPE bloom_filter(0.01) GRANULARITY 1';
    const index = isIndexed ? [`INDEX ${quotedName(`${name}_values`)} ${quotedName(name)} ${type}`] : [];
    return { name, parts: [column, ...index] };
  });
  const parts = [...own, ...columns.flatMap(({ parts: [column] }) => column!)];
  const indexes = columns.flatMap(({ parts: [, ...index] }) => index);
  return {
    make: [
      `CREATE DATABASE IF NOT EXISTS ${quotedName(settings.database)}`,
      `CREATE TABLE IF NOT EXISTS ${table} (${[...parts, ...indexes].join(', ')}) ENGINE = ${engineOf(wish)} ` +
        'PARTITION BY (_unit, _attempt) ORDER BY _cursor',
    ],
    columns: columns.map(({ name, parts: [column, ...index] }) => ({
      name,
      add: [`COLUMN ${column!}`, ...index].map((what) => `ALTER TABLE ${table} ADD ${what}`),
    })),
  };
}

/** The table engine. A shard of several servers is replicated; its path in ZooKeeper or Keeper is derived from the names. */
function engineOf({ settings, agent, shard, replica }: TableWish): string {
  if (settings.shards[shard]!.length === 1) return 'MergeTree()';
  const path = `/logstrata/${settings.database}/${agent}/${shard}`;
  return `ReplicatedMergeTree(${textLiteral(Buffer.from(path))}, ${textLiteral(Buffer.from(String(replica)))})`;
}
