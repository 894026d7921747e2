import { assertNever } from '../../engine/core/errors.js';
import type { Position } from '../../engine/core/cursor.js';
import type { CompareOp, Predicate, Query } from '../../engine/scan/query.js';
import type { Field, FieldType, Schema } from '../../engine/core/schema.js';
import type { ModelRecord, Value } from '../model/dataset.js';
import type { DuckDbRow, DuckDbValue } from './duckdb.js';

/** Ordinals are the low 40 bits of a `_cursor`. */
const ordinalBits = 40n;

const comparisons: Record<CompareOp, string> = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' };

/**
 * Folds the ASCII letters, the long s and the Kelvin sign, whose simple case folding is an ASCII letter, and nothing else.
 * DuckDB's own lower() takes İ to i, which case folding does not.
 */
function folded(column: string): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  return `translate(${column}, ${text(`${letters.toUpperCase()}ſ\u212a`)}, ${text(`${letters}sk`)})`;
}

/** A SQL literal of any text, including the zero character and quotes. */
export function text(value: string): string {
  return `decode(unhex('${Buffer.from(value, 'utf8').toString('hex')}'))`;
}

/**
 * Whether a pattern matches in a column. The alternative, a text that cannot be, leaves the matches as they are: RE2 takes the end off a
 * pattern that must end with the text and then finds no second end, so that DuckDB 1.x finds `$$` in a constant and not in a column.
 */
export function regexpMatches(column: string, pattern: string): string {
  return `regexp_matches(${column}, ${text(`(?:${pattern})|c\\Ac`)}, 'c')`;
}

/**
 * Whether SQL can express the predicate: `like`, `prefix` and `suffix` only with an ASCII search text, patterns without classes that depend on
 * the version of Unicode.
 */
export function isSayable(predicate: Predicate): boolean {
  if (predicate.kind === 'any') return predicate.members.every(isSayable);
  if (predicate.kind !== 'string' && predicate.kind !== 'anywhere') return true;
  const isWhole = predicate.kind === 'string' && (predicate.op === 'exact' || predicate.op === 'ne');
  if (predicate.op.endsWith('regex')) return !/\\p|\(\?i|[\ud800-\udfff]/i.test(predicate.value);
  return isWhole || Buffer.byteLength(predicate.value) === predicate.value.length;
}

function condition(predicate: Predicate, schema: Schema): string {
  if (predicate.kind === 'anywhere') {
    const members = schema.fields.flatMap(({ type }, field) =>
      type === 'string'
        ? [condition({ kind: 'string', field, op: predicate.op, value: predicate.value }, schema)]
        : [],
    );
    const isThere = `COALESCE(${members.map((member) => `COALESCE(${member}, FALSE)`).join(' OR ')}, FALSE)`;
    return predicate.isAbsent ? `NOT (${isThere})` : isThere;
  }
  if (predicate.kind === 'any')
    return `(${['FALSE', ...predicate.members.map((member) => condition(member, schema))].join(' OR ')})`;
  const { name, type } = schema.fields[predicate.field]!;
  const column = `"${name}"`;
  switch (predicate.kind) {
    case 'int': {
      const value = `CAST('${predicate.value}' AS BIGINT)`;
      const compared =
        type === 'time'
          ? `make_timestamptz(1000 * ${value})`
          : type === 'bool'
            ? `${predicate.value !== 0n}`
            : value;
      return `${column} ${comparisons[predicate.op]} ${compared}`;
    }
    case 'float':
      return `${column} ${comparisons[predicate.op]} CAST('${predicate.value}' AS DOUBLE)`;
    case 'string': {
      const { op, value } = predicate;
      if (op === 'exact') return `${column} = ${text(value)}`;
      if (op === 'ne') return `${column} <> ${text(value)}`;
      const negated = op.startsWith('not_') ? 'NOT ' : '';
      if (op.endsWith('regex')) return `${negated}${regexpMatches(column, value)}`;
      const call = { like: 'contains', prefix: 'starts_with', suffix: 'suffix' }[op.replace('not_', '')];
      return `${negated}${call}(${folded(column)}, ${text(value.toLowerCase())})`;
    }
    case 'exists':
      return `${column} IS ${predicate.value ? 'NOT ' : ''}NULL`;
    case 'set':
      return `(${predicate.members.map((member) => condition(member, schema)).join(' OR ')})`;
    default:
      return assertNever(predicate);
  }
}

function cursorOf(position: Position): string {
  return `CAST('${(BigInt(position.partition) << ordinalBits) | BigInt(position.ordinal)}' AS UBIGINT)`;
}

/** The query as SQL over the sealed segments in an agent's folder. Its rows come in the order of the answer. */
export function sqlOf(query: Query, schema: Schema, folder: string): string {
  const { after, before, limit, predicates } = query;
  const conditions = [
    ...(after === undefined ? [] : [`_cursor::UBIGINT > ${cursorOf(after)}`]),
    ...(before === undefined ? [] : [`_cursor::UBIGINT < ${cursorOf(before)}`]),
    ...predicates.map((predicate) => condition(predicate, schema)),
  ];
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const direction = after === undefined ? 'DESC' : 'ASC';
  const chosen = `SELECT * FROM ${sealed(folder)} ${where} ORDER BY _cursor ${direction} LIMIT ${limit}`;
  return `SELECT _cursor, ${schema.fields.map(shown).join(', ')} FROM (${chosen}) ORDER BY _cursor`;
}

/** Texts in hexadecimal, because DuckDB's Node API drops a byte order mark at the beginning of a text. */
function shown({ name, type }: Field): string {
  const value = type === 'time' ? `epoch_ms("${name}")` : type === 'string' ? `hex("${name}")` : `"${name}"`;
  return `${value} AS "${name}"`;
}

/** All sealed segments as one table; columns that a segment of another schema lacks are null. */
export function sealed(folder: string): string {
  return `read_parquet('${folder}/**/*.parquet', union_by_name = true, hive_partitioning = false)`;
}

/** A row of such an answer as a record. */
export function recordOf(row: DuckDbRow, schema: Schema): ModelRecord {
  const cursor = BigInt.asUintN(64, row._cursor as bigint);
  const position = {
    partition: Number(cursor >> ordinalBits),
    ordinal: Number(cursor & ((1n << ordinalBits) - 1n)),
  };
  return { position, values: schema.fields.map(({ name, type }) => valueOf(row[name]!, type)) };
}

function valueOf(value: DuckDbValue, type: FieldType): Value {
  if (value === null) return null;
  const expected = { int: 'bigint', time: 'bigint', float: 'number', string: 'string', bool: 'boolean' }[
    type
  ];
  if (typeof value !== expected) throw new Error(`DuckDB gave a ${typeof value} for a field of type ${type}`);
  if (type === 'bool') return value === true ? 1n : 0n;
  return type === 'string' ? Buffer.from(value as string, 'hex').toString('utf8') : (value as Value);
}
