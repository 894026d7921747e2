import type { ThriftFields } from '../../parquet/thrift-reader.js';

/**
 * The annotation that gives a physical type its meaning: the `LogicalType` of parquet.thrift, or the older `ConvertedType`
 * where there is none (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md).
 */
export type Annotation =
  | {
      readonly kind:
        'none' | 'text' | 'date' | 'null' | 'binary JSON' | 'UUID' | 'float16' | 'interval' | 'geometry';
    }
  | { readonly kind: 'time of day' | 'timestamp'; readonly unit: TimeUnit; readonly isUtc: boolean }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'integer'; readonly bits: number; readonly isSigned: boolean };

/** Unit of the ticks of a time. */
export type TimeUnit = 'MILLIS' | 'MICROS' | 'NANOS';

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
export function readAnnotation(element: ThriftFields): Annotation {
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
export function annotationText(annotation: Annotation): string {
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
