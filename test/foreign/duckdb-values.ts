import type { ForeignColumn } from '../../engine/foreign/foreign-file.js';
import type { DuckDbValue } from '../oracle/duckdb.js';

/** A value of the engine, as `columnValue` returns it. */
export type OurValue = null | bigint | number | string;

/** The parts of DuckDB's value classes; the name of a class shows which of them it has. */
interface DuckDbParts {
  readonly micros: bigint;
  readonly nanos: bigint;
  readonly millis: bigint;
  readonly milliseconds: bigint;
  readonly nanoseconds: bigint;
  readonly seconds: bigint;
  readonly days: number;
  readonly months: number;
  readonly bytes: Uint8Array;
  readonly items: readonly DuckDbValue[];
  readonly entries: Record<string, DuckDbValue> & readonly { key: DuckDbValue; value: DuckDbValue }[];
}

const dayMs = 86_400_000;

/** Converts a value that DuckDB returned for a column to a value of the engine. */
export function ourValue(value: DuckDbValue, { type, values }: ForeignColumn): OurValue {
  if (value === null) return null;
  if (values.kind === 'json') return jsonOf(value);
  switch (type) {
    case 'bool':
      return value === true ? 1n : 0n;
    case 'int':
      return typeof value === 'object' ? BigInt(String(value)) : BigInt(value as number | bigint);
    case 'float': {
      const number = typeof value === 'object' ? Number(String(value)) : Number(value);
      return Number.isFinite(number) ? number : null;
    }
    case 'time':
      return timeOf(value as object);
    case 'string':
      return textOf(value);
  }
}

function kindOf(value: object): string {
  return value.constructor.name.replace(/^DuckDB|Value$/g, '');
}

/** Milliseconds since the epoch. */
function timeOf(value: object): bigint {
  if (kindOf(value) === 'Date') return BigInt((value as DuckDbParts).days) * BigInt(dayMs);
  const [nanos] = instant(value);
  return nanos < 0n ? -((999_999n - nanos) / 1_000_000n) : nanos / 1_000_000n;
}

function instant(value: object): [nanos: bigint] {
  const parts = value as DuckDbParts;
  switch (kindOf(value)) {
    case 'TimestampSeconds':
      return [parts.seconds * 1_000_000_000n];
    case 'TimestampMilliseconds':
      return [(parts.millis ?? parts.milliseconds) * 1_000_000n];
    case 'TimestampNanoseconds':
      return [parts.nanos ?? parts.nanoseconds];
    default:
      return [parts.micros * 1000n];
  }
}

function fraction(nanos: bigint): string {
  const digits = nanos.toString().padStart(9, '0').replace(/0+$/, '');
  return digits === '' ? '' : `.${digits}`;
}

/** The text of a value that is not nested. */
function textOf(value: DuckDbValue): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const parts = value as DuckDbParts;
  switch (kindOf(value)) {
    case 'Blob':
      return Buffer.from(parts.bytes).toString('utf8');
    case 'Date':
      return new Date(parts.days * dayMs).toISOString().slice(0, 10).replace(/T$/, '');
    case 'Interval':
      return intervalOf(parts);
    case 'Time':
    case 'TimeTZ':
      return clock(parts.micros * 1000n);
    case 'TimeNS':
      return clock(parts.nanos);
    case 'Timestamp':
    case 'TimestampTZ':
    case 'TimestampSeconds':
    case 'TimestampMilliseconds':
    case 'TimestampNanoseconds': {
      const [nanos] = instant(value);
      const rest = ((nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
      const seconds = (nanos - rest) / 1_000_000_000n;
      return new Date(Number(seconds) * 1000).toISOString().replace(/\.000Z$/, '') + fraction(rest) + 'Z';
    }
    default:
      return String(value);
  }
}

function clock(nanos: bigint): string {
  const seconds = Number(nanos / 1_000_000_000n);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':') + fraction(nanos % 1_000_000_000n);
}

/** The ISO 8601 duration of an interval without negative parts. */
function intervalOf({ months, days, micros }: DuckDbParts): string {
  const seconds = Number(micros / 1_000_000n);
  const part = (count: number | string, unit: string): string =>
    `${count}` === '0' ? '' : `${count}${unit}`;
  const date = part(Math.floor(months / 12), 'Y') + part(months % 12, 'M') + part(days, 'D');
  const second = `${seconds % 60}${fraction((micros % 1_000_000n) * 1000n)}`;
  const time =
    part(Math.floor(seconds / 3600), 'H') + part(Math.floor(seconds / 60) % 60, 'M') + part(second, 'S');
  if (date === '' && time === '') return 'PT0S';
  return `P${date}${time === '' ? '' : `T${time}`}`;
}

function jsonOf(value: DuckDbValue): string {
  if (value === null) return 'null';
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : 'null';
  if (typeof value !== 'object') return typeof value === 'string' ? JSON.stringify(value) : String(value);
  const { items, entries } = value as DuckDbParts;
  switch (kindOf(value)) {
    case 'List':
    case 'Array':
      return `[${items.map(jsonOf).join(',')}]`;
    case 'Struct': {
      const fields = Object.entries(entries as Record<string, DuckDbValue>);
      return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${jsonOf(field)}`).join(',')}}`;
    }
    case 'Map': {
      const pairs = entries.map(({ key, value: held }) => {
        const text = jsonOf(key);
        return `${text.startsWith('"') ? text : JSON.stringify(text)}:${jsonOf(held)}`;
      });
      return `{${pairs.join(',')}}`;
    }
    case 'Decimal':
      return String(value);
    default:
      return JSON.stringify(textOf(value));
  }
}
