import {
  jsonBool,
  jsonInt64,
  jsonNull,
  jsonString,
  type JsonColumn,
  type LineKeys,
  type LineOutput,
} from '../../../engine/kernels/json-rows.js';
import type { LineFormat } from '../../../engine/core/schema.js';

/** Columns with their keys. */
export interface PlainTable extends LineKeys {
  readonly columns: readonly JsonColumn[];
}

/**
 * Writes the lines of rows[from], rows[from + 1], … up to `to`, or of the rows from, from + 1, … if `rows` is null, as long as there
 * is certainly room: before each value, for its longest form and `fixedBytes`. Returns the index of the first row not
 * written. The ordinal of a row is `ordinalOfRow0` + row.
 */
export function writeJsonRows(
  table: PlainTable,
  rows: Uint32Array | null,
  from: number,
  to: number,
  partition: number,
  ordinalOfRow0: number,
  output: LineOutput,
): number {
  const valuesMax = output.bytes.length - table.fixedBytes;
  for (let i = from; i < to; i++) {
    const row = rows === null ? i : rows[i]!;
    const cursor = (BigInt(partition) << 40n) + BigInt(ordinalOfRow0 + row);
    const line = lineOf(table, row, cursor, output.at, valuesMax);
    if (line === null) return i;
    output.bytes.set(line, output.at);
    output.at += line.length;
  }
  return to;
}

/** Writes the line of a row that begins at `at`; returns null if there may not be room for all of it. */
function lineOf(
  { format, keys, columns }: PlainTable,
  row: number,
  cursor: bigint,
  at: number,
  valuesMax: number,
): Buffer | null {
  if (at > valuesMax) return null;
  const { before, after, absent } = frames[format];
  const parts = [Buffer.from(before(cursor.toString(16).padStart(16, '0')))];
  let end = at + parts[0]!.length;
  for (const [c, column] of columns.entries()) {
    const key = Buffer.from(keys[c]!);
    const isAbsent = isNull(column, row);
    if (!isAbsent && end + key.length + stringBytesMax(column, row) > valuesMax) return null;
    const value = Buffer.from(isAbsent ? absent : valueOf(column, row, format));
    parts.push(key, value);
    end += key.length + value.length;
  }
  return Buffer.concat([...parts, Buffer.from(after)]);
}

/** The bytes before the values of a line, behind them, and for null. */
const frames = {
  jsonl: { before: (cursor: string) => `{"_cursor":"${cursor}"`, after: '}\n', absent: 'null' },
  json: { before: (cursor: string) => `,{"_cursor":"${cursor}"`, after: '}\n', absent: 'null' },
  csv: { before: (cursor: string) => cursor, after: '\r\n', absent: '' },
};

function isNull({ kind, validity }: JsonColumn, row: number): boolean {
  return kind === jsonNull || (validity.length > 0 && ((validity[row >> 3]! >> (row & 7)) & 1) === 0);
}

function entryOf({ codes }: JsonColumn, row: number): number {
  return codes.length === 0 ? row : codes[row]!;
}

/** The maximum number of bytes of a string; -Infinity for other values, for which `fixedBytes` reserves room. */
function stringBytesMax(column: JsonColumn, row: number): number {
  if (column.kind !== jsonString) return -Infinity;
  const entry = entryOf(column, row);
  return 6 * (column.offsets[entry + 1]! - column.offsets[entry]!) + 2;
}

function valueOf(column: JsonColumn, row: number, format: LineFormat): string {
  const { kind, halves, doubles, offsets, bytes } = column;
  const entry = entryOf(column, row);
  const integer = (): bigint => (BigInt(halves[2 * entry + 1]!) << 32n) | BigInt(halves[2 * entry]! >>> 0);
  if (kind === jsonInt64) return String(integer());
  if (kind === jsonBool) return String(integer() !== 0n);
  if (kind === jsonString) {
    const text = Buffer.from(bytes.subarray(offsets[entry], offsets[entry + 1])).toString();
    return format === 'csv' ? csvField(text) : JSON.stringify(text);
  }
  return JSON.stringify(doubles[entry]);
}

/** RFC 4180, with an empty string in quotes. */
function csvField(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
