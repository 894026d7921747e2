import {
  fieldTypes,
  timeUnits,
  type FieldType,
  type ForeignChunk,
  type ForeignColumn,
  type TimeUnit,
} from '../../engine/index.js';
import { compileTimestamp, type TimestampReader } from '../../engine/times/timestamp.js';

/** Facts about a column of a file: its field type, its stored type, how it is decoded, and what the footer says of its values. */
export interface ColumnFacts extends Pick<
  ForeignColumn,
  'name' | 'id' | 'type' | 'way' | 'stored' | 'reason' | 'isUnsigned64'
> {
  /** Whether the file has no value of it. */
  readonly isNull?: true | undefined;
  /** Whether it may have integers that a float can't represent exactly. */
  readonly isWide?: true | undefined;
  /** The unit in which its numbers are times of our days. */
  readonly unit?: TimeUnit | undefined;
  /** The format in which its texts are times, as their bounds show. */
  readonly format?: string | undefined;
  /** The year of its last time, where that is in the far future. */
  readonly farYear?: number;
}

const yearMs = 365.25 * 86_400_000;

/** Times are expected from this one on, when logs began to be kept, and until a few years ahead. */
const ourDaysMs = Date.UTC(1990, 0, 1);
const aheadMs = 10 * yearMs;

/** Formats of times that texts in columns often have. */
const textFormats = ['rfc3339', '2006-01-02T15:04:05', '2006-01-02 15:04:05'].map((format) => ({
  format,
  read: compileTimestamp({ format }, 'UTC'),
}));

/** What the bounds of a column's chunks say about its values. */
export function valueFacts(
  { type, stored }: ForeignColumn,
  chunks: readonly ForeignChunk[],
  nowMs: number,
): Pick<ColumnFacts, 'isWide' | 'unit' | 'format' | 'farYear'> {
  if (type === 'string') {
    const bounds = chunks.flatMap(({ min, max }) => [min, max]);
    const isTime = (read: TimestampReader) =>
      bounds.every((bound) => bound?.kind === 'text' && read(bound.value, nowMs) !== null);
    const found = textFormats.find(({ read }) => isTime(read));
    return found === undefined ? {} : { format: found.format };
  }
  if (type !== 'time' && type !== 'int' && type !== 'float') return {};
  const min = chunks.reduce((least, chunk) => Math.min(least, boundOf(chunk.min)), Infinity);
  const max = chunks.reduce((most, chunk) => Math.max(most, boundOf(chunk.max)), -Infinity);
  if (type === 'time') {
    const isFar = max > nowMs + aheadMs;
    return isFar ? { farYear: Math.floor(1970 + max / yearMs) } : {};
  }
  const unit = (Object.keys(timeUnits) as TimeUnit[]).find((each) => {
    const ms = timeUnits[each].ms / timeUnits[each].perMs;
    return min * ms >= ourDaysMs && max * ms <= nowMs + aheadMs;
  });
  const isShort = type === 'float' || /^u?int(?:8|16|32)\b/i.test(stored);
  // Bounds that are not known are NaN, for which each comparison is false.
  const isWide = !isShort && !(min >= Number.MIN_SAFE_INTEGER && max <= Number.MAX_SAFE_INTEGER);
  return { ...(isWide ? { isWide } : {}), ...(unit === undefined ? {} : { unit }) };
}

function boundOf(bound: ForeignChunk['min']): number {
  return bound === null ? NaN : Number(bound.value);
}

/** Types of tables whose names do not begin like those of fields. A time of day is text. */
const otherTypes: ReadonlyMap<string, FieldType> = new Map([
  ...['byte', 'short', 'long'].map((name) => [name, 'int'] as const),
  ['double', 'float'],
  ['date', 'time'],
  ['time', 'string'],
]);

/** The field type of a column by the type that a table's schema gives. Nested columns, whose type is no text there, are strings of JSON. */
export function fieldTypeOf(type: unknown): FieldType {
  if (typeof type !== 'string') return 'string';
  const [, digits, scale] = /^decimal\((\d+),\s*(\d+)\)$/i.exec(type) ?? [];
  if (digits === undefined)
    return otherTypes.get(type) ?? fieldTypes.find((name) => type.startsWith(name)) ?? 'string';
  // As for a column of a file (`fieldOf`).
  if (Number(scale) === 0 && Number(digits) <= 18) return 'int';
  return Number(digits) <= 15 ? 'float' : 'string';
}
