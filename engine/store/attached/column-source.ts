import {
  isValid,
  numberColumn,
  type BytesColumn,
  type Column,
  type DictionaryColumn,
  type NumberColumn,
  type PlainColumn,
} from '../../columns/column.js';
import { conversionOf, convertColumn, convertZone, type Conversion } from '../../columns/convert-column.js';
import type { ZoneMap } from '../../columns/zone-map.js';
import type {
  ForeignBound,
  ForeignChunk,
  ForeignColumn,
  ForeignFile,
  ForeignRowGroup,
} from '../../foreign/foreign-file.js';
import { innerColumn } from '../../foreign/inner-column.js';
import { bitmapBytes } from '../../kernels/bitmap.js';
import { int64Max, int64Min } from '../../core/limits.js';
import { timeUnits, typeFacts, type Field, type FieldType, type TimeUnit } from '../../core/schema.js';
import { compileTimestamp, type TimestampFormat } from '../../times/timestamp.js';
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
  /** If not null, texts are first read as times of this format. Others become null. */
  readonly format: TimestampFormat | null;
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
  const own = renamed !== undefined && Object.hasOwn(renamed, name) ? renamed[name]! : name;
  const found = innerColumn(file, own);
  if (found === null) return { kind: 'missing' };
  const { columnIndex, column } = found;
  const { unit, timezone } = field.attached ?? {};
  const format = field.attached?.format ?? (unit === 's' ? 'unix' : undefined);
  const kind = 'column';
  // As text, a decimal has all digits of its scale: 1.50, as a wider decimal has, and not the 1.5 of a float.
  if (field.type === 'string' && column.type === 'float' && /decimal/i.test(column.stored)) {
    const asText: ForeignColumn = { ...column, type: 'string', way: 'complete', values: { kind: 'text' } };
    const change = { unit: null, format: null, conversion: 'toString', type: 'string' } as const;
    return { kind, columnIndex, column: asText, boundUnit: null, change };
  }
  if (field.type === 'time' && format !== undefined && column.type === 'string') {
    const texts = timezone === undefined ? { format } : { format, timezone };
    const change = { unit: null, format: texts, conversion: 'none', type: 'time' } as const;
    return { kind, columnIndex, column, boundUnit: null, change };
  }
  const isNumber = column.type === 'int' || column.type === 'float';
  if (field.type !== 'time' || unit === undefined || !isNumber) {
    const conversion = conversionOf(column.type, field.type);
    const change = { unit: null, format: null, conversion, type: field.type };
    return { kind, columnIndex, column, boundUnit: null, change };
  }
  const boundUnit = unit;
  const counted = { unit, format: null, conversion: 'none', type: 'time' } as const;
  if (column.type === 'float' || column.way === 'complete')
    return { kind, columnIndex, column, boundUnit, change: counted };
  // The decoder converts integers to times by itself.
  const asTime: ForeignColumn = { ...column, type: 'time', values: { kind: 'ticks', ...timeUnits[unit] } };
  return { kind, columnIndex, column: asTime, boundUnit, change: { ...counted, unit: null } };
}

/** The chunk of a row group that has the values. Nothing else is known of a part of a structure: statistics are of the whole. */
export function chunkOf(
  { chunks }: ForeignRowGroup,
  { columnIndex, column: { inner, node } }: ColumnSource & { kind: 'column' },
): ForeignChunk {
  const chunk = chunks[columnIndex]!;
  if (inner === undefined) return chunk;
  const whole = { ...chunk, nullCount: null, min: null, max: null, bloomFilter: null };
  if (node === undefined) return whole;
  const first = node.firstLeaf - inner.firstLeaf;
  const leaves = chunk.leaves!.slice(first, first + node.leaves);
  const offset = Math.min(...leaves.map((leaf) => leaf.offset));
  const end = Math.max(...leaves.map((leaf) => leaf.offset + leaf.bytes));
  return { ...whole, offset, bytes: end - offset, leaves };
}

/** Converts decoded values to values of the field. */
export function changeColumn(column: Column, { unit, format, conversion, type }: ValueChange): Column {
  if (format !== null) return timesOf(column, textReader(format));
  const timed = unit === null || kindOf(column) === 'bytes' ? column : timesOf(column, numberReader(unit));
  return convertColumn(timed, conversion, type);
}

/** Returns the time of a value in milliseconds; null where it is none. */
type TimeReader = (values: PlainColumn, index: number) => bigint | null;

function numberReader(unit: TimeUnit): TimeReader {
  return (numbers, index) => timeOf((numbers as NumberColumn).values[index]!, unit);
}

/** Reads texts in a format with a year. Without a zone in the text or in the format, they are times of UTC. */
function textReader(format: TimestampFormat): TimeReader {
  const read = compileTimestamp(format, 'UTC');
  return (texts, index) => {
    const { bytes, offsets } = texts as BytesColumn;
    const time = read(
      Buffer.from(
        bytes.buffer,
        bytes.byteOffset + offsets[index]!,
        offsets[index + 1]! - offsets[index]!,
      ).toString(),
      0,
    );
    return time === null ? null : BigInt(time);
  };
}

function kindOf(column: Column): PlainColumn['kind'] {
  return column.kind === 'dictionary' ? column.values.kind : column.kind;
}

/** Converts values to times, rounded down to milliseconds. What is no time becomes null. */
function timesOf(column: Column, read: TimeReader): NumberColumn {
  const { length, validity } = column;
  const values = new BigInt64Array(length);
  const times = new Uint8Array(bitmapBytes(length));
  const set = (row: number, time: bigint | null): void => {
    if (time === null) return;
    values[row] = time;
    times[row >> 3]! |= 1 << (row & 7);
  };
  if (column.kind === 'dictionary') {
    const { codes, values: entries } = column;
    const known = new Map<number, bigint | null>();
    for (let row = 0; row < length; row++) {
      if (!isValid(validity, row)) continue;
      const code = codes[row]!;
      let time = known.get(code);
      if (time === undefined) known.set(code, (time = read(entries, code)));
      set(row, time);
    }
  } else for (let row = 0; row < length; row++) if (isValid(validity, row)) set(row, read(column, row));
  return numberColumn('int64', length, values.buffer, 0, times);
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
  // Texts are not ordered like the times in them.
  const bound = (value: ForeignBound | null) =>
    change.format === null ? boundValue(value, column.type, boundUnit) : null;
  // Numbers beyond the range of times become null, and texts that are no times. Only bounds within it say that there are none.
  const isTimed =
    change.unit !== null ||
    change.format !== null ||
    (column.values.kind === 'ticks' && column.values.ms > 1);
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
