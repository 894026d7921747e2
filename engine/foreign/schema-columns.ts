import type { ThriftFields } from '../parquet/thrift-reader.js';
import { physicalType } from '../parquet/format.js';
import { valueBytesMax } from '../core/limits.js';
import type { ForeignColumn } from './foreign-file.js';
import type { ParquetStorage } from './parquet-schema.js';
import { fieldOf, type StoredType } from './stored-type.js';

/**
 * The annotation that gives a physical type its meaning: the `LogicalType` of parquet.thrift, or the older `ConvertedType`
 * where there is none (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md).
 */
type Annotation =
  | { readonly kind: PlainKind }
  | { readonly kind: 'time of day' | 'timestamp'; readonly unit: TimeUnit; readonly isUtc: boolean }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'integer'; readonly bits: number; readonly isSigned: boolean };

/** Annotations without parameters. */
type PlainKind =
  'none' | 'text' | 'date' | 'null' | 'binary JSON' | 'UUID' | 'float16' | 'interval' | 'geometry';

/** Unit of the ticks of a time. */
type TimeUnit = 'MILLIS' | 'MICROS' | 'NANOS';

/** By the field ids of the union `LogicalType`, and by the numbers of `ConvertedType`. */
const logicalKinds: ReadonlyMap<number, PlainKind> = new Map([
  [1, 'text'],
  [4, 'text'],
  [6, 'date'],
  [11, 'null'],
  [12, 'text'],
  [13, 'binary JSON'],
  [14, 'UUID'],
  [15, 'float16'],
  [17, 'geometry'],
  [18, 'geometry'],
] as const);
const convertedKinds: ReadonlyMap<number, PlainKind> = new Map([
  [0, 'text'],
  [4, 'text'],
  [6, 'date'],
  [19, 'text'],
  [20, 'binary JSON'],
  [21, 'interval'],
] as const);

const none: Annotation = { kind: 'none' };

/** The annotation of a `SchemaElement` that is not a group. An unknown one counts as none. */
function readAnnotation(element: ThriftFields): Annotation {
  const logical = element.has(10) ? readLogicalType(element.struct(10)) : none;
  return logical.kind === 'none' ? readConvertedType(element) : logical;
}

function readLogicalType(union: ThriftFields): Annotation {
  for (const [id, kind] of logicalKinds) if (union.has(id)) return { kind };
  if (union.has(5)) {
    const decimal = union.struct(5);
    return { kind: 'decimal', scale: decimal.size(1), precision: decimal.size(2) };
  }
  if (union.has(7)) return timeOf('time of day', union.struct(7));
  if (union.has(8)) return timeOf('timestamp', union.struct(8));
  if (!union.has(10)) return none;
  const integer = union.struct(10);
  return { kind: 'integer', bits: integer.size(1), isSigned: integer.bool(2) };
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
  const kind = convertedKinds.get(type);
  if (kind !== undefined) return { kind };
  if (type === 5) return { kind: 'decimal', scale: element.size(7, 0), precision: element.size(8, 0) };
  // TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS
  if (type >= 7 && type <= 10)
    return {
      kind: type < 9 ? 'time of day' : 'timestamp',
      unit: type % 2 === 1 ? 'MILLIS' : 'MICROS',
      isUtc: true,
    };
  // UINT_8, UINT_16, UINT_32, UINT_64, then INT_8 to INT_64
  if (type >= 11 && type <= 18)
    return { kind: 'integer', bits: 8 << ((type - 11) % 4), isSigned: type >= 15 };
  return none;
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
    default:
      return annotation.kind.toUpperCase();
  }
}

/** The field type of a column that is not nested, and how its values are converted. */
export interface ColumnType extends Pick<ForeignColumn, 'type' | 'stored' | 'values' | 'isNull'> {
  readonly meaning: StoredType;
  readonly parquet: ParquetStorage;
  /** Why our own kernels can't decode the column; empty where they can. */
  readonly reason: string;
}

/** Bytes of an INT96. */
const int96Bytes = 12;

const perSecond = { MILLIS: 1000, MICROS: 1_000_000, NANOS: 1_000_000_000 } as const;

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

/** The column type of a `SchemaElement` that is not a group. Throws `FormatError` for an invalid type. */
export function columnTypeOf(element: ThriftFields): ColumnType {
  const type = element.size(1);
  const name = typeNames.get(type) ?? element.fail(`the physical type ${type} is unknown`);
  const isFixed = type === physicalType.fixedLengthBytes;
  const valueBytes = isFixed ? element.size(2) : type === physicalType.int96 ? int96Bytes : 0;
  if (isFixed && (valueBytes === 0 || valueBytes > valueBytesMax))
    element.fail(`the values have ${valueBytes} bytes`);
  const annotation = readAnnotation(element);
  const meaning = meaningOf(type, valueBytes, annotation);
  const field = fieldOf(meaning);
  const isInteger = type === physicalType.int32 || type === physicalType.int64;
  const words = [isFixed ? `${name}(${valueBytes})` : name, annotationText(annotation)];
  return {
    ...field,
    reason: reasonOf(type, meaning, isInteger && field.type !== 'string'),
    ...(annotation.kind === 'null' ? { isNull: true } : {}),
    stored: words.filter((word) => word !== '').join(' '),
    meaning,
    parquet: {
      type,
      valueBytes,
      isUnsigned: meaning.kind === 'int' && !meaning.isSigned,
      scale: meaning.kind === 'decimal' && isInteger && field.type === 'float' ? meaning.scale : 0,
    },
  };
}

/** What the values of a physical type mean. An annotation that does not fit the type is ignored. */
function meaningOf(type: number, valueBytes: number, annotation: Annotation): StoredType {
  switch (type) {
    case physicalType.boolean:
      return { kind: 'boolean' };
    case physicalType.int32:
    case physicalType.int64: {
      const bits = type === physicalType.int32 ? 32 : 64;
      const { kind } = annotation;
      if (kind === 'decimal') return annotation;
      if (kind === 'date' && bits === 32) return { kind, bits };
      if (kind === 'time of day' || (kind === 'timestamp' && bits === 64))
        return { kind, perSecond: perSecond[annotation.unit] };
      return { kind: 'int', bits, isSigned: kind !== 'integer' || annotation.isSigned };
    }
    case physicalType.int96:
      return { kind: 'timestamp', perSecond: perSecond.NANOS };
    case physicalType.float:
    case physicalType.double:
      return { kind: 'float', bits: type === physicalType.float ? 32 : 64 };
    default: {
      const { kind } = annotation;
      if (kind === 'decimal') return annotation;
      if (kind === 'float16' && valueBytes === 2) return { kind: 'float', bits: 16 };
      const isKnown =
        kind === 'geometry' ||
        (kind === 'UUID' && valueBytes === 16) ||
        (kind === 'interval' && valueBytes === 12);
      return { kind: isKnown ? kind : 'bytes' };
    }
  }
}

/** Why our own kernels can't convert the values to the column's type; empty where they can. */
function reasonOf(type: number, meaning: StoredType, isScaled: boolean): string {
  if (type === physicalType.int96) return 'INT96';
  switch (meaning.kind) {
    case 'decimal':
      return isScaled ? '' : `DECIMAL(${meaning.precision}, ${meaning.scale})`;
    case 'float':
      return meaning.bits === 16 ? 'FLOAT16' : '';
    case 'time of day':
      return 'TIME';
    case 'UUID':
    case 'interval':
    case 'geometry':
      return meaning.kind.toUpperCase();
    default:
      return '';
  }
}
