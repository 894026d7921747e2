import type { Schema } from '../../terms/schema.js';
import { columnOfField, quotedName, textLiteral, typeOfField } from './far-sql.js';
import type { FarSettings } from './far-place.js';

/** From this version on columns have codecs and tables skip granules by filters. */
const modernVersion = 21;

/** The table of an agent: of its name, in the database of the configuration. */
export function tableName({ database }: Pick<FarSettings, 'database'>, agent: string): string {
  return `${quotedName(database)}.${quotedName(agent)}`;
}

/** What a server is told so that it has a table, and which server that is. */
export interface TableWish {
  readonly settings: FarSettings;
  readonly agent: string;
  readonly schema: Schema;
  readonly shard: number;
  readonly replica: number;
  /** First number of the server's version. */
  readonly version: number;
}

/** What makes a table with all columns, and what adds each to one that lacks it. */
export interface TableStatements {
  readonly make: readonly string[];
  readonly columns: readonly { readonly name: string; readonly add: readonly string[] }[];
}

/**
 * Statements for an agent's table. One partition an attempt: it is dropped as a whole, and how many rows it has stands in `system.parts`. The
 * order is that of positions. Whole texts are found by filters where the version has them.
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

/** A shard of several servers replicates; where its tables meet in ZooKeeper, or Keeper, follows from the names. */
function engineOf({ settings, agent, shard, replica }: TableWish): string {
  if (settings.shards[shard]!.length === 1) return 'MergeTree()';
  const path = `/logstrata/${settings.database}/${agent}/${shard}`;
  return `ReplicatedMergeTree(${textLiteral(Buffer.from(path))}, ${textLiteral(Buffer.from(String(replica)))})`;
}
