import { assertNever } from '../../engine/core/errors.js';
import type { Counting, Filter, Question, SetColumn } from '../question.js';

/** The parts of SQL that differ between databases. */
export interface Dialect {
  /** A string literal. */
  text(value: string): string;
  /** A literal that can be compared with the time column. */
  time(timeMs: number): string;
  /** A condition that the column contains the text, ignoring case, in the fastest form that gives the right answer. */
  like(column: SetColumn, value: string): string;
  prefix(column: SetColumn, value: string): string;
  suffix(column: SetColumn, value: string): string;
  /** A condition that the column has a match of a pattern in RE2 syntax. Undefined where the database has none. */
  regex?(column: SetColumn, value: string): string;
  /** The start of the hour of a time column, in milliseconds since the epoch. */
  hour(column: SetColumn): string;
  /** The average, or the value that 99 % of the values don't exceed: exact, or as near to it as ours. */
  number(fn: 'avg' | 'p99', column: string): string;
}

const comparisons = { eq: '=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function condition(filter: Filter, columns: readonly SetColumn[], dialect: Dialect): string {
  const column = columns.find(({ name }) => name === filter.column);
  if (column === undefined) throw new Error(`there is no column ${filter.column}`);
  const { name } = column;
  const text = String(filter.value);
  switch (filter.op) {
    case 'eq':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return `${name} ${comparisons[filter.op]} ${text}`;
    case 'since':
      return `${name} >= ${dialect.time(Date.parse(text))}`;
    case 'until':
      return `${name} < ${dialect.time(Date.parse(text))}`;
    case 'in':
      return `${name} IN (${inValues(filter.value).map(dialect.text).join(', ')})`;
    case 'exact':
      return `${name} = ${dialect.text(text)}`;
    case 'like':
      return dialect.like(column, text);
    case 'prefix':
      return dialect.prefix(column, text);
    case 'suffix':
      return dialect.suffix(column, text);
    case 'regex':
      if (dialect.regex === undefined) throw new Error('the database has no patterns');
      return dialect.regex(column, text);
    default:
      return assertNever(filter.op);
  }
}

function inValues(value: Filter['value']): readonly string[] {
  return typeof value === 'object' ? value : [String(value)];
}

/** Whether a question asks for a pattern. */
export function asksPattern({ filters }: Question): boolean {
  return filters.some(({ op }) => op === 'regex');
}

/** A question translated to SQL. */
export interface SqlQuestion {
  /** `WHERE …`; empty where there is no condition. */
  readonly where: string;
  readonly direction: 'ASC' | 'DESC';
  /** `LIMIT n`; empty where the conditions bound the answer. */
  readonly limit: string;
}

/**
 * Translates a question to SQL. A page after a cursor without filters becomes a range of cursors, as a peer's cursors have no gaps.
 * Somebody who knows the table would write it so, and it is much cheaper than the first n of a sort.
 */
export function sqlQuestion(
  question: Question,
  columns: readonly SetColumn[],
  dialect: Dialect,
): SqlQuestion {
  const { after, before, filters, any = [], limit } = question;
  const isRange = after !== undefined && filters.length + any.length === 0;
  const conditionOf = (filter: Filter): string => condition(filter, columns, dialect);
  const conditions = [
    ...(after === undefined ? [] : [`_cursor > ${after.seq}`]),
    ...(isRange ? [`_cursor <= ${after.seq + limit}`] : []),
    ...(before === undefined ? [] : [`_cursor < ${before.seq}`]),
    ...filters.map(conditionOf),
    ...(any.length === 0 ? [] : [`(${any.map(conditionOf).join(' OR ')})`]),
  ];
  const isBounded = isRange || question.isWhole === true;
  return {
    where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`,
    direction: after === undefined && !isBounded ? 'DESC' : 'ASC',
    limit: isBounded ? '' : `LIMIT ${limit}`,
  };
}

/** Selects `_cursor` and `shown` of the records of an answer from `table`, in ascending order. The result of a descending search is reversed. */
export function selectRecords(parts: SqlQuestion, table: string, shown: string): string {
  const { where, direction, limit } = parts;
  if (direction === 'ASC') return `SELECT _cursor, ${shown} FROM ${table} ${where} ORDER BY _cursor ${limit}`;
  const chosen = `SELECT * FROM ${table} ${where} ORDER BY _cursor DESC ${limit}`;
  return `SELECT _cursor, ${shown} FROM (${chosen}) AS chosen ORDER BY _cursor`;
}

/** Selects the counts of a question in the order of the answer: `hour`, `value` and `count`. */
export function selectCounts(
  question: Question & { readonly counting: Counting },
  columns: readonly SetColumn[],
  dialect: Dialect,
  table: string,
): string {
  const { byHour, column, top, number } = question.counting;
  const { where } = sqlQuestion(question, columns, dialect);
  const time = columns.find(({ kind }) => kind === 'time')!;
  const keys = [
    ...(byHour ? [`${dialect.hour(time)} AS hour`] : []),
    ...(column === undefined ? [] : [`${column} AS value`]),
  ];
  const numbers = number === undefined ? [] : [`${dialect.number(number.fn, number.column)} AS number`];
  const select = `SELECT ${[...keys, 'count(*) AS count', ...numbers].join(', ')} FROM ${table} ${where}`;
  if (keys.length === 0) return select;
  const order = byHour ? keys.map((_, i) => i + 1).join(', ') : `count DESC, value LIMIT ${top}`;
  return `${select} GROUP BY ${keys.map((_, i) => i + 1).join(', ')} ORDER BY ${order}`;
}

/** Escapes the special characters of LIKE, for `ESCAPE '\'`. */
export function escapeLike(value: string): string {
  return value.replace(/[\\%_]/g, '\\$&');
}

/** A string literal with its quotes doubled. */
export function quoteText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}
