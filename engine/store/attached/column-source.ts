import {
  isValid,
  numberColumn,
  type Column,
  type DictionaryColumn,
  type NumberColumn,
} from '../../columns/column.js';
import { conversionOf, convertColumn, convertZone, type Conversion } from '../../columns/convert-column.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import type { ForeignBound, ForeignChunk, ForeignColumn, ForeignFile } from '../../foreign/foreign-file.js';
import { bitmapBytes } from '../../kernels/bitmap.js';
import { int64Max, int64Min } from '../../core/limits.js';
import { timeUnits, typeFacts, type Field, type FieldType, type TimeUnit } from '../../core/schema.js';
import type { FileToAttach } from './attached-list.js';

/** How a field's values are obtained from an attached file. */
export type ColumnSource =
  | {
      readonly kind: 'column';
      /** Index of the column in the file. */
      readonly columnIndex: number;
      readonly column: ForeignColumn;
      /** The unit of the column's bounds, if they are numbers and the field's values are times. */
      readonly boundUnit: TimeUnit | null;
      /** How the decoded values are converted. */
      readonly change: ValueChange;
    }
  /** A folder name `key=value` gives the value of all rows. */
  | { readonly kind: 'constant'; readonly text: string }
  /** The file has no such column, or its folder says null: all rows are null. */
  | { readonly kind: 'missing' };

/** How decoded values become values of a field. */
export interface ValueChange {
  /** If not null, numbers are first converted to times: they count this unit since the epoch. */
  readonly unit: TimeUnit | null;
  readonly conversion: Conversion;
  /** Type of the field. */
  readonly type: FieldType;
}

/** How a field is read from a file. `constants` are the values given by its folders, or by the log of its table. */
export function columnSource(
  field: Field,
  file: ForeignFile,
  { constants, renamed }: Pick<FileToAttach, 'constants' | 'renamed'>,
): ColumnSource {
  const name = field.attached?.column ?? field.name;
  if (Object.hasOwn(constants, name)) {
    const text = constants[name] ?? null;
    return text === null ? { kind: 'missing' } : { kind: 'constant', text };
  }
  const own = renamed !== undefined && Object.hasOwn(renamed, name) ? renamed[name] : name;
  const columnIndex = file.columns.findIndex((column) => column.name === own);
  if (columnIndex < 0) return { kind: 'missing' };
  const column = file.columns[columnIndex]!;
  const unit = field.attached?.unit;
  // As text, a decimal has all digits of its scale: 1.50, as a wider decimal has, and not the 1.5 of a float.
  if (field.type === 'string' && column.type === 'float' && /decimal/i.test(column.stored)) {
    const asText: ForeignColumn = { ...column, type: 'string', way: 'complete', values: { kind: 'text' } };
    const change = { unit: null, conversion: 'toString', type: 'string' } as const;
    return { kind: 'column', columnIndex, column: asText, boundUnit: null, change };
  }
  const isNumber = column.type === 'int' || column.type === 'float';
  if (field.type !== 'time' || unit === undefined || !isNumber) {
    const change = { unit: null, conversion: conversionOf(column.type, field.type), type: field.type };
    return { kind: 'column', columnIndex, column, boundUnit: null, change };
  }
  const kind = 'column';
  const boundUnit = unit;
  if (column.type === 'float' || column.way === 'complete')
    return { kind, columnIndex, column, boundUnit, change: { unit, conversion: 'none', type: 'time' } };
  // The decoder converts integers to times by itself.
  const asTime: ForeignColumn = { ...column, type: 'time', values: { kind: 'ticks', ...timeUnits[unit] } };
  const change = { unit: null, conversion: 'none', type: 'time' } as const;
  return { kind, columnIndex, column: asTime, boundUnit, change };
}

/** Converts decoded values to values of the field. */
export function changeColumn(column: Column, { unit, conversion, type }: ValueChange): Column {
  const timed = unit === null ? column : timesOf(column, unit);
  return convertColumn(timed, conversion, type);
}

/** Converts numbers that count `unit` since the epoch to times, rounded down to milliseconds. Impossible times become null. */
function timesOf(column: Column, unit: TimeUnit): Column {
  if (column.kind === 'bytes') return column;
  if (column.kind === 'dictionary') {
    const codes = Uint32Array.from(column.codes.subarray(0, column.length));
    const entries = column.values as NumberColumn;
    return timesAt(entries, unit, column.length, (row) => (isValid(column.validity, row) ? codes[row]! : -1));
  }
  return timesAt(column, unit, column.length, (row) => (isValid(column.validity, row) ? row : -1));
}

/** @param at index of a row's value in `numbers`; -1 for null */
function timesAt(
  numbers: NumberColumn,
  unit: TimeUnit,
  rows: number,
  at: (row: number) => number,
): NumberColumn {
  const values = new BigInt64Array(rows);
  const validity = new Uint8Array(bitmapBytes(rows));
  for (let row = 0; row < rows; row++) {
    const index = at(row);
    const time = index < 0 ? null : timeOf(numbers.values[index]!, unit);
    if (time === null) continue;
    values[row] = time;
    validity[row >> 3]! |= 1 << (row & 7);
  }
  return numberColumn('int64', rows, values.buffer, 0, validity);
}

/** The time of a number. Floats are rounded to microseconds first: further digits come from their binary form, not from the time. */
function timeOf(value: bigint | number, unit: TimeUnit): bigint | null {
  const { perMs, ms } = timeUnits[unit];
  if (typeof value === 'bigint') {
    const time = value * BigInt(ms);
    const quotient = time / BigInt(perMs);
    const floor = quotient * BigInt(perMs) > time ? quotient - 1n : quotient;
    return floor < int64Min || floor > int64Max ? null : floor;
  }
  const time = Math.floor(Math.round(((value * ms) / perMs) * 1000) / 1000);
  return Number.isSafeInteger(time) ? BigInt(time) : null;
}

/** A column with the same value in all rows. They are null if the text is not a value of the type. */
export function constantColumn(text: string, type: FieldType, rows: number): Column {
  const entry = constantValue(text, type);
  if (entry === null) return convertColumn(rowsOf(text, rows), 'toNull', type);
  if (entry instanceof Uint8Array) return rowsOf(text, rows);
  const values = typeof entry === 'bigint' ? BigInt64Array.of(entry) : Float64Array.of(entry);
  const kind = typeof entry === 'bigint' ? 'int64' : 'float64';
  return { ...rowsOf('', rows), values: numberColumn(kind, 1, values.buffer, 0, null) };
}

function rowsOf(text: string, rows: number): DictionaryColumn {
  const bytes = new TextEncoder().encode(text);
  const offsets = Uint32Array.of(0, bytes.length);
  const values = { kind: 'bytes', length: 1, offsets, bytes, validity: null } as const;
  return { kind: 'dictionary', length: rows, codes: new Uint8Array(rows), values, validity: null };
}

function constantValue(text: string, type: FieldType): bigint | number | Uint8Array | null {
  const value = typeFacts[type].parse(text);
  return typeof value === 'string' ? new TextEncoder().encode(value) : value;
}

/** The zone map of a constant column, without building the column. */
export function constantZone(text: string, type: FieldType, rows: number): ZoneMap {
  const value = constantValue(text, type);
  return { nullCount: value === null ? rows : 0, rows, min: value, max: value };
}

/**
 * The zone map of `rows` rows of a column chunk, from the statistics in the file; null if they are of no use.
 *
 * @param rowGroupRows rows of the whole row group
 */
export function zoneOfChunk(
  { column, boundUnit, change }: ColumnSource & { kind: 'column' },
  { nullCount, min, max }: ForeignChunk,
  rowGroupRows: number,
  rows: number,
): ZoneMap | null {
  const bound = (value: ForeignBound | null) => boundValue(value, column.type, boundUnit);
  // Numbers beyond the range of times become null. Only bounds within it say that there are none.
  const isTimed = change.unit !== null || (column.values.kind === 'ticks' && column.values.ms > 1);
  const hasNone = nullCount === 0 && (!isTimed || (bound(min) !== null && bound(max) !== null));
  const hasOnly = nullCount === rowGroupRows;
  // If only some rows of the row group are null, or if that is unknown, a null count of 1 stands for "some rows may be null". That is
  // possible only if the zone has more than one row.
  if (!hasNone && !hasOnly && rows === 1) return null;
  const nulls = hasNone ? 0 : hasOnly ? rows : 1;
  return convertZone({ nullCount: nulls, rows, min: bound(min), max: bound(max) }, change.conversion);
}

function boundValue(
  bound: ForeignBound | null,
  type: FieldType,
  unit: TimeUnit | null,
): bigint | number | Uint8Array | null {
  switch (bound?.kind) {
    case undefined:
      return null;
    case 'int':
      return unit === null ? BigInt(bound.value) : timeOf(BigInt(bound.value), unit);
    case 'float':
      return unit === null ? bound.value : timeOf(bound.value, unit);
    case 'text':
      return type === 'string' ? new TextEncoder().encode(bound.value) : null;
  }
}
