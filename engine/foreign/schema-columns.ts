import type { ThriftFields } from '../parquet/thrift-reader.js';
import { physicalType } from '../parquet/format.js';
import type { FieldType } from '../core/schema.js';
import { valueBytesMax } from '../core/limits.js';
import type { ForeignColumn, ForeignValues } from './foreign-file.js';
import type { Annotation, ParquetStorage, TimeUnit } from './parquet-schema.js';

/** Field ids of the union `LogicalType`. */
const logicalId = {
  string: 1,
  enum: 4,
  decimal: 5,
  date: 6,
  time: 7,
  timestamp: 8,
  integer: 10,
  unknown: 11,
  json: 12,
  bson: 13,
  uuid: 14,
  float16: 15,
  geometry: 17,
  geography: 18,
} as const;

const none: Annotation = { kind: 'none' };

/** The annotation of a `SchemaElement` that is not a group. An unknown one counts as none. */
function readAnnotation(element: ThriftFields): Annotation {
  const logical = element.has(10) ? readLogicalType(element.struct(10)) : none;
  return logical.kind === 'none' ? readConvertedType(element) : logical;
}

function readLogicalType(union: ThriftFields): Annotation {
  const has = (...names: readonly (keyof typeof logicalId)[]): boolean =>
    names.some((name) => union.has(logicalId[name]));
  if (has('string', 'enum', 'json')) return { kind: 'text' };
  if (has('date')) return { kind: 'date' };
  if (has('unknown')) return { kind: 'null' };
  if (has('bson')) return { kind: 'binary JSON' };
  if (has('uuid')) return { kind: 'UUID' };
  if (has('float16')) return { kind: 'float16' };
  if (has('geometry', 'geography')) return { kind: 'geometry' };
  if (has('decimal')) {
    const decimal = union.struct(logicalId.decimal);
    return { kind: 'decimal', scale: decimal.size(1), precision: decimal.size(2) };
  }
  if (has('integer')) {
    const integer = union.struct(logicalId.integer);
    return { kind: 'integer', bits: integer.size(1), isSigned: integer.bool(2) };
  }
  if (has('time')) return timeOf('time of day', union.struct(logicalId.time));
  if (has('timestamp')) return timeOf('timestamp', union.struct(logicalId.timestamp));
  return none;
}

function timeOf(kind: 'time of day' | 'timestamp', type: ThriftFields): Annotation {
  const units: readonly TimeUnit[] = ['MILLIS', 'MICROS', 'NANOS'];
  const union = type.struct(2);
  const unit = units.find((_, i) => union.has(i + 1)) ?? union.fail('the unit of time is unknown');
  return { kind, unit, isUtc: type.bool(1) };
}

/** Reads the number of `ConvertedType`. */
function readConvertedType(element: ThriftFields): Annotation {
  const type = element.size(6, -1);
  switch (type) {
    case 0: // UTF8
    case 4: // ENUM
    case 19: // JSON
      return { kind: 'text' };
    case 5:
      return { kind: 'decimal', scale: element.size(7, 0), precision: element.size(8, 0) };
    case 6:
      return { kind: 'date' };
    case 7:
    case 8:
      return { kind: 'time of day', unit: type === 7 ? 'MILLIS' : 'MICROS', isUtc: true };
    case 9:
    case 10:
      return { kind: 'timestamp', unit: type === 9 ? 'MILLIS' : 'MICROS', isUtc: true };
    case 11: // UINT_8, UINT_16, UINT_32, UINT_64, then INT_8 to INT_64
    case 12:
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
      return { kind: 'integer', bits: 8 << ((type - 11) % 4), isSigned: type >= 15 };
    case 20:
      return { kind: 'binary JSON' };
    case 21:
      return { kind: 'interval' };
    default:
      return none;
  }
}

/** The annotation for display; empty for none. */
function annotationText(annotation: Annotation): string {
  switch (annotation.kind) {
    case 'none':
      return '';
    case 'text':
      return 'STRING';
    case 'binary JSON':
      return 'BSON';
    case 'decimal':
      return `DECIMAL(${annotation.precision}, ${annotation.scale})`;
    case 'integer':
      return `${annotation.isSigned ? 'INT' : 'UINT'}(${annotation.bits})`;
    case 'time of day':
      return `TIME(${annotation.unit})`;
    case 'timestamp':
      return `TIMESTAMP(${annotation.unit}${annotation.isUtc ? '' : ', local'})`;
    case 'date':
    case 'null':
    case 'UUID':
    case 'float16':
    case 'interval':
    case 'geometry':
      return annotation.kind.toUpperCase();
  }
}

/** The field type of a column that is not nested, and how its values are converted. */
export interface ColumnType extends Pick<ForeignColumn, 'type' | 'stored' | 'values' | 'isNull'> {
  readonly parquet: ParquetStorage;
  /** Why our own kernels can't decode the column; empty where they can. */
  readonly reason: string;
}

/** Bytes of an INT96. */
const int96Bytes = 12;

/** A double represents exactly every integer of up to 15 decimal digits, and every power of ten up to 10^22. */
const exactDigitsMax = 15;
const exactPowerMax = 22;
/** A signed 64-bit integer holds every integer of up to 18 decimal digits. */
const int64DigitsMax = 18;

const dayMs = 86_400_000;
const ticksPerMs = { MILLIS: 1, MICROS: 1000, NANOS: 1_000_000 } as const satisfies Record<TimeUnit, number>;

const typeNames = new Map<number, string>([
  [physicalType.boolean, 'BOOLEAN'],
  [physicalType.int32, 'INT32'],
  [physicalType.int64, 'INT64'],
  [physicalType.int96, 'INT96'],
  [physicalType.float, 'FLOAT'],
  [physicalType.double, 'DOUBLE'],
  [physicalType.byteArray, 'BYTE_ARRAY'],
  [physicalType.fixedLengthBytes, 'FIXED_LEN_BYTE_ARRAY'],
]);

/** A field type, and how stored values are converted to it. */
export interface Meaning {
  readonly type: FieldType;
  readonly values: ForeignValues;
  readonly reason: string;
  readonly isUnsigned?: boolean;
  readonly scale?: number;
}

const same: ForeignValues = { kind: 'same' };
const text: ForeignValues = { kind: 'text' };

function timeTicks(perMs: number, ms: number, reason = ''): Meaning {
  return { type: 'time', values: { kind: 'ticks', perMs, ms }, reason };
}

/** The column type of a `SchemaElement` that is not a group, and its annotation. Throws `FormatError` for an invalid type. */
export function columnTypeOf(element: ThriftFields): ColumnType & { readonly annotation: Annotation } {
  const type = element.size(1);
  const name = typeNames.get(type) ?? element.fail(`the physical type ${type} is unknown`);
  const isFixed = type === physicalType.fixedLengthBytes;
  const valueBytes = isFixed ? element.size(2) : type === physicalType.int96 ? int96Bytes : 0;
  if (isFixed && (valueBytes === 0 || valueBytes > valueBytesMax))
    element.fail(`the values have ${valueBytes} bytes`);
  const annotation = readAnnotation(element);
  const { isUnsigned = false, scale = 0, ...meaning } = meaningOf(type, valueBytes, annotation);
  const stored = [isFixed ? `${name}(${valueBytes})` : name, annotationText(annotation)];
  return {
    ...meaning,
    ...(annotation.kind === 'null' ? { isNull: true } : {}),
    stored: stored.filter((word) => word !== '').join(' '),
    parquet: { type, valueBytes, isUnsigned, scale },
    annotation,
  };
}

/** An annotation that does not fit the physical type is ignored. */
function meaningOf(type: number, valueBytes: number, annotation: Annotation): Meaning {
  switch (type) {
    case physicalType.boolean:
      return { type: 'bool', values: same, reason: '' };
    case physicalType.int32:
    case physicalType.int64:
      return integerMeaning(type, annotation);
    case physicalType.int96:
      return timeTicks(ticksPerMs.NANOS, 1, 'INT96');
    case physicalType.float:
    case physicalType.double:
      return { type: 'float', values: same, reason: '' };
    default:
      return bytesMeaning(valueBytes, annotation);
  }
}

function integerMeaning(type: number, annotation: Annotation): Meaning {
  const is32 = type === physicalType.int32;
  switch (annotation.kind) {
    case 'integer':
      return { type: 'int', values: same, reason: '', isUnsigned: !annotation.isSigned };
    case 'date':
      if (is32) return timeTicks(1, dayMs);
      break;
    case 'timestamp':
      if (!is32) return timeTicks(ticksPerMs[annotation.unit], 1);
      break;
    case 'time of day':
      return { type: 'string', values: text, reason: 'TIME' };
    case 'decimal': {
      const meaning = decimalMeaning(annotation);
      return meaning.type === 'string' ? meaning : { ...meaning, reason: '' };
    }
    default:
  }
  return { type: 'int', values: same, reason: '' };
}

/** DECIMAL becomes `int` without digits after the point, `float` where a double has all of its digits, else text. */
export function decimalMeaning({ precision, scale }: { precision: number; scale: number }): Meaning {
  const reason = `DECIMAL(${precision}, ${scale})`;
  if (scale === 0 && precision <= int64DigitsMax) return { type: 'int', values: same, reason };
  if (precision <= exactDigitsMax && scale <= exactPowerMax)
    return { type: 'float', values: same, reason, scale };
  return { type: 'string', values: text, reason };
}

function bytesMeaning(valueBytes: number, annotation: Annotation): Meaning {
  switch (annotation.kind) {
    case 'decimal':
      return { ...decimalMeaning(annotation), scale: 0 };
    case 'UUID':
      if (valueBytes === 16) return { type: 'string', values: text, reason: 'UUID' };
      break;
    case 'float16':
      if (valueBytes === 2) return { type: 'float', values: same, reason: 'FLOAT16' };
      break;
    case 'interval':
      if (valueBytes === 12) return { type: 'string', values: text, reason: 'INTERVAL' };
      break;
    case 'geometry':
      return { type: 'string', values: { kind: 'json' }, reason: 'GEOMETRY' };
    default:
  }
  return { type: 'string', values: { kind: 'bytes' }, reason: '' };
}
