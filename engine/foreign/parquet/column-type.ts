import { physicalType } from '../../parquet/format.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { FieldType } from '../../terms/schema.js';
import { valueBytesMax } from '../../terms/limits.js';
import type { ForeignColumn, ForeignValues, ParquetStorage } from '../foreign-file.js';
import { annotationText, readAnnotation, type Annotation, type TimeUnit } from './annotation.js';

/** The field type of a column that is not nested, and how its values are converted. */
export interface ColumnType extends Pick<ForeignColumn, 'type' | 'stored' | 'values' | 'isNull'> {
  readonly parquet: ParquetStorage;
  /** Why our own kernels can't decode the column; empty where they can. */
  readonly reason: string;
}

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

/** The column type of a `SchemaElement` that is not a group. Throws `FormatError` for an invalid type. */
export function columnTypeOf(element: ThriftFields): ColumnType {
  const type = element.size(1);
  const name = typeNames.get(type) ?? element.fail(`the physical type ${type} is unknown`);
  const isFixed = type === physicalType.fixedLengthBytes;
  const valueBytes = isFixed ? element.size(2) : 0;
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
