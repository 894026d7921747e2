import type { RecordBatch } from '../../columns/column.js';
import { farRowsMax } from '../../terms/far-limits.js';
import type { Field, Schema } from '../../terms/schema.js';
import type { FarCopy } from '../manifest/far-copy.js';
import type { OrdinalRun } from '../manifest/manifest.js';
import type { FarSettings } from './far-place.js';
import { columnOfField, cursorLiteral, intLiteral, numberOf, quotedName } from './far-sql.js';
import { tableName } from './far-table.js';
import type { FarRecords } from './native-reader.js';

/** Rows of a copy that are counted. */
export interface FarCountUnit {
  readonly copy: FarCopy;
  /** Null for all that it has. */
  readonly runs: readonly OrdinalRun[] | null;
}

/** How many rows of one shard match, by ranges of a time and by the values of a field, where these are given. */
export interface FarCountQuestion {
  readonly agent: string;
  readonly shard: number;
  readonly units: readonly FarCountUnit[];
  /** SQL that holds for the rows that match, and for no others; null for all. */
  readonly condition: string | null;
  /** A range begins at each of these and ends before the next. They ascend, and no time is before the first. */
  readonly time: { readonly field: Field; readonly starts: readonly bigint[] } | null;
  readonly value: Field | null;
}

/** Rows by what they have in common. */
export interface FarCounted {
  readonly rows: Float64Array;
  /** The number of the range, from 0, and the value, each where it was asked for. */
  readonly batch: RecordBatch;
  readonly bytes: number;
}

/** The first column of the answer. */
export const countedName = '_rows';

/** Name of the column that has the numbers of ranges. */
const rangeName = '_range';

/** More groups than this may have been cut off. */
export const farGroupsMax = farRowsMax;

/** The columns of the answer behind the first, and their names. */
export function countedColumns({ time, value }: Pick<FarCountQuestion, 'time' | 'value'>): {
  readonly schema: Schema;
  readonly names: readonly string[];
} {
  const fields = [time?.field, value].filter((field) => field !== undefined && field !== null);
  const names = [...(time === null ? [] : [rangeName]), ...(value === null ? [] : [columnOfField(value)])];
  return { schema: { fields }, names };
}

/** The statement that such a question is. */
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

/** The statement that asks for the first and the last time of the rows of such a question. */
export function timesText(settings: FarSettings, question: FarCountQuestion, field: Field): string {
  const column = quotedName(columnOfField(field));
  return `SELECT min(${column}), max(${column}) FROM ${tableName(settings, question.agent)} WHERE ${rowsOf(question)}`;
}

/** The number of the range that a time lies in, from 0: computed where all are as long, else found among the starts. */
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

/** The numbers of the first column, which are read as positions are. */
export function countsOf({ partitions, ordinals }: FarRecords): Float64Array {
  const one = 2 ** 40;
  return Float64Array.from(ordinals, (ordinal, i) => partitions[i]! * one + ordinal);
}
