import { typeFacts, type Schema, type Field } from '../core/schema.js';
import type { FarSettings } from './far-transport.js';
import type { RecordBatch } from '../columns/column.js';
import { magnitudesPerOctave, subnormalOctaves } from '../kernels/numbers.js';
import { rowGroupRowsMax } from '../core/limits.js';
import type { FarCopy, OrdinalRun } from '../store/manifest/manifest.js';
import { type FarRecords, farTypeOf } from './native-format.js';
import { positionToInt64, type Position } from '../core/cursor.js';

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
    const isIndexed = isModern && typeFacts[field.type].column === 'bytes';
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

/** The rows of a copy that are counted. */
export interface FarCountUnit {
  readonly copy: FarCopy;
  /** The positions to count; null for all rows of the copy. */
  readonly runs: readonly OrdinalRun[] | null;
}

/** Counts the matching rows of one shard, optionally grouped by ranges of a time field and by the values of a field. */
export interface FarCountQuestion {
  readonly agent: string;
  readonly shard: number;
  readonly units: readonly FarCountUnit[];
  /** SQL condition that is true for exactly the matching rows; null for all. */
  readonly condition: string | null;
  /** Each range begins at one of `starts` and ends before the next. They ascend, and no time is before the first. */
  readonly time: { readonly field: Field; readonly starts: readonly bigint[] } | null;
  readonly value: Field | null;
  /** The numbers that are asked for instead of the counts, of the rows that have a value of their field; null for the counts. */
  readonly numbers: FarNumbersQuestion | null;
}

/**
 * The numbers of a field: sums and bounds, of all values of a group or of those of each magnitude (see `magnitudesPerOctave`), or its
 * different values. Floats have no sum, because that depends on the order in which they are added.
 */
export interface FarNumbersQuestion {
  readonly field: Field;
  readonly by: 'group' | 'magnitude' | 'value';
}

/** The count of each group. */
export interface FarCounted {
  readonly rows: Float64Array;
  /** For each group the index of its time range, from 0, the value, and the columns of numbers, if they were asked for. */
  readonly batch: RecordBatch;
  readonly bytes: number;
}

/** Name of the column of counts, which is the first of the answer. */
export const countedName = '_rows';

/** Name of the column of range indexes. */
const rangeName = '_range';

/** Limit on the groups of an answer. With this many, further groups may have been cut off. */
export const farGroupsMax = rowGroupRowsMax;

/** A column of the answer: an SQL expression with the type of a field, which rows may be grouped by. */
interface CountedColumn {
  readonly name: string;
  readonly field: Field;
  readonly text: string;
  readonly isKey: boolean;
}

function columnsOf({ time, value, numbers }: Omit<FarCountQuestion, 'units'>): readonly CountedColumn[] {
  const columns: CountedColumn[] = numbers === null ? [] : numberColumns(numbers);
  if (value !== null) {
    const name = columnOfField(value);
    columns.unshift({ name, field: value, text: quotedName(name), isKey: true });
  }
  if (time !== null)
    columns.unshift({ name: rangeName, field: time.field, text: rangeNumber(time), isKey: true });
  return columns;
}

/** The columns of the answer after the counts, with their names. */
export function countedColumns(question: Omit<FarCountQuestion, 'units'>): {
  readonly schema: Schema;
  readonly names: readonly string[];
} {
  const columns = columnsOf(question);
  return { schema: { fields: columns.map(({ field }) => field) }, names: columns.map(({ name }) => name) };
}

/** The SQL statement of a count. */
export function countText(settings: FarSettings, question: FarCountQuestion): string {
  const { agent, numbers } = question;
  const columns = columnsOf(question);
  const shown = columns.map(({ name, text }) =>
    text === quotedName(name) ? text : `${text} AS ${quotedName(name)}`,
  );
  const groups = columns.flatMap(({ name, isKey }) => (isKey ? [quotedName(name)] : []));
  const present = numbers === null ? '' : ` AND isNotNull(${quotedName(columnOfField(numbers.field))})`;
  return (
    `SELECT ${[`count() AS ${countedName}`, ...shown].join(', ')} FROM ${tableName(settings, agent)} ` +
    `WHERE ${rowsOf(question)}${present}` +
    `${groups.length === 0 ? '' : ` GROUP BY ${groups.join(', ')}`} LIMIT ${farGroupsMax} FORMAT Native`
  );
}

/** The columns of numbers. All have the type of the field: the bounds, the magnitude, and the sums of the low and the high halves of integers. */
function numberColumns({ field, by }: FarNumbersQuestion): CountedColumn[] {
  const column = quotedName(columnOfField(field));
  const columnOf = (name: string, text: string, isKey = false): CountedColumn => ({
    name,
    field,
    text,
    isKey,
  });
  if (by === 'value') return [columnOf('_number', column, true)];
  const magnitude = `to${farTypeOf(field.type)}(${magnitudeNumber(`toFloat64(assumeNotNull(${column}))`)})`;
  const low = `bitAnd(${column}, ${intLiteral(2n ** 32n - 1n)})`;
  const high = `intDiv(${column} - ${low}, ${intLiteral(2n ** 32n)})`;
  const hasSum = typeFacts[field.type].column === 'int64';
  return [
    columnOf('_least', `min(${column})`),
    columnOf('_greatest', `max(${column})`),
    ...(hasSum ? [columnOf('_low', `sum(${low})`), columnOf('_high', `sum(${high})`)] : []),
    ...(by === 'group' ? [] : [columnOf('_magnitude', `if(isNull(${column}), NULL, ${magnitude})`, true)]),
  ];
}

/** SQL expression for the magnitude of a double, as `listMagnitudes` finds it. The text of a double has its bytes, without the last zeros. */
function magnitudeNumber(number: string): string {
  const size = `abs(${number})`;
  const isNormal = `${size} >= ${floatLiteral(2 ** -1022)}`;
  const scaled = `${size} * if(${isNormal}, ${floatLiteral(1)}, ${floatLiteral(2 ** subnormalOctaves)})`;
  const bits = `reinterpretAsUInt64(reinterpretAsString(${scaled}))`;
  const octaves = `if(${isNormal}, ${subnormalOctaves * magnitudesPerOctave}, 0)`;
  return `if(${number} < 0, -1, 1) * toInt64(intDiv(${bits}, ${unsignedLiteral(2n ** 46n)}) + ${octaves})`;
}

/** The SQL statement for the first and the last time of the rows of a count. */
export function timesText(settings: FarSettings, question: FarCountQuestion, field: Field): string {
  const column = quotedName(columnOfField(field));
  return `SELECT min(${column}), max(${column}) FROM ${tableName(settings, question.agent)} WHERE ${rowsOf(question)}`;
}

/** SQL expression for the index of the range of a time: a division if all ranges have equal length, else a search of the starts. */
function rangeNumber({ field, starts }: NonNullable<FarCountQuestion['time']>): string {
  const column = quotedName(columnOfField(field));
  const time = `assumeNotNull(${column})`;
  return `if(isNull(${column}), NULL, toInt64(${numberIn(starts, time)}))`;
}

function numberIn(starts: readonly bigint[], time: string): string {
  const [first = 0n, second] = starts;
  if (second === undefined) return '0';
  const step = second - first;
  const isEven = first >= 0n && starts.every((start, i) => start === first + BigInt(i) * step);
  if (!isEven) return `arrayCount(start -> start <= ${time}, [${starts.map(intLiteral).join(', ')}]) - 1`;
  const last = intLiteral(BigInt(starts.length - 1));
  return `least(intDiv(${time} - ${intLiteral(first)}, ${intLiteral(step)}), ${last})`;
}

function rowsOf({ units, condition }: FarCountQuestion): string {
  const whole = units.filter(({ runs }) => runs === null).map(({ copy }) => numberOf(copy.attempt));
  const parts = units.flatMap(({ copy, runs }) =>
    runs === null ? [] : [`(_attempt = ${numberOf(copy.attempt)} AND (${runs.map(rangeOf).join(' OR ')}))`],
  );
  const all = [...(whole.length === 0 ? [] : [`_attempt IN (${whole.join(', ')})`]), ...parts];
  return `(${all.join(' OR ')})${condition === null ? '' : ` AND ${condition}`}`;
}

function rangeOf({ partition, firstOrdinal, rows }: OrdinalRun): string {
  const [from, to] = [firstOrdinal, firstOrdinal + rows - 1].map((ordinal) =>
    cursorLiteral({ partition, ordinal }),
  );
  return `(_cursor >= ${from} AND _cursor <= ${to})`;
}

/** The counts in the first column, which has been decoded as positions. */
export function countsOf({ partitions, ordinals }: FarRecords): Float64Array {
  const one = 2 ** 40;
  return Float64Array.from(ordinals, (ordinal, i) => partitions[i]! * one + ordinal);
}

/**
 * SQL statements are composed of fixed keywords, names quoted by `quotedName`, and literals made here. A text literal contains only
 * letters, digits, a few harmless characters and `\xHH` escapes, so no text can end it (SQL injection).
 */

/** A text literal of UTF-8 bytes. */
export function textLiteral(bytes: Uint8Array): string {
  let literal = "'";
  for (const byte of bytes) {
    const isPlain = byte < 0x80 && /[A-Za-z0-9 _./:=,-]/.test(String.fromCharCode(byte));
    literal += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  }
  return `${literal}'`;
}

/** A 64-bit integer literal. Written as a conversion, because the minimum has no literal that every version of ClickHouse reads as an integer. */
export function intLiteral(value: bigint): string {
  return `toInt64('${BigInt.asIntN(64, value)}')`;
}

/** A double literal, written as its bits, because versions of ClickHouse differ in how they parse decimals. */
export function floatLiteral(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return `reinterpretAsFloat64(unhex('${bytes.toString('hex').toUpperCase()}'))`;
}

/** An unsigned 64-bit integer literal. */
export function unsignedLiteral(value: bigint): string {
  return `toUInt64('${BigInt.asUintN(64, value)}')`;
}

/** The value of column `_cursor` at a position. */
export function cursorLiteral(position: Position): string {
  return unsignedLiteral(positionToInt64(position));
}

/** A quoted name of a database, table or column. */
export function quotedName(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}

/**
 * The column name of a field. It includes the type: a field that changes its type gets a new column, and rows shipped before keep theirs.
 * It is unambiguous, because field names contain no double underscore.
 */
export function columnOfField({ name, type }: Field): string {
  return `${name}__${type}`;
}

/** Type of a field's column. Every field is nullable. */
function typeOfField({ type }: Field): string {
  return `Nullable(${farTypeOf(type)})`;
}

/** The number given as hexadecimal digits. */
export function numberOf(hex: string): bigint {
  return BigInt(`0x${hex}`);
}
