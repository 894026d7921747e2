import type { RecordBatch } from '../../columns/column.js';
import { rowGroupRowsMax } from '../../terms/limits.js';
import type { Field, Schema } from '../../terms/schema.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import type { FarSettings } from './far-place.js';
import { columnOfField, cursorLiteral, intLiteral, numberOf, quotedName } from './far-sql.js';
import { tableName } from './far-table.js';
import type { FarRecords } from './native-reader.js';

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
}

/** The count of each group. */
export interface FarCounted {
  readonly rows: Float64Array;
  /** For each group the index of its time range, from 0, and the value, if they were asked for. */
  readonly batch: RecordBatch;
  readonly bytes: number;
}

/** Name of the column of counts, which is the first of the answer. */
export const countedName = '_rows';

/** Name of the column of range indexes. */
const rangeName = '_range';

/** Limit on the groups of an answer. With this many, further groups may have been cut off. */
export const farGroupsMax = rowGroupRowsMax;

/** The columns of the answer after the counts, with their names. */
export function countedColumns({ time, value }: Pick<FarCountQuestion, 'time' | 'value'>): {
  readonly schema: Schema;
  readonly names: readonly string[];
} {
  const fields = [time?.field, value].filter((field) => field !== undefined && field !== null);
  const names = [...(time === null ? [] : [rangeName]), ...(value === null ? [] : [columnOfField(value)])];
  return { schema: { fields }, names };
}

/** The SQL statement of a count. */
export function countText(settings: FarSettings, question: FarCountQuestion): string {
  const { agent, time, value } = question;
  const groups = countedColumns(question).names.map(quotedName);
  const range = time === null ? [] : [`${rangeNumber(time)} AS ${rangeName}`];
  const columns = [`count() AS ${countedName}`, ...range, ...(value === null ? [] : [groups.at(-1)!])];
  return (
    `SELECT ${columns.join(', ')} FROM ${tableName(settings, agent)} WHERE ${rowsOf(question)}` +
    `${groups.length === 0 ? '' : ` GROUP BY ${groups.join(', ')}`} LIMIT ${farGroupsMax} FORMAT Native`
  );
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
