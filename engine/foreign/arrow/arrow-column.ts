import type { ForeignColumn } from '../foreign-file.js';
import { decimalMeaning } from '../parquet/column-type.js';
import type { ArrowField, ArrowType } from './arrow-schema.js';

const dayMs = 86_400_000;

/** The column of a top-level field, as `columnTypeOf` gives it for Parquet. All Arrow columns are decoded in the complete way. */
export function arrowColumnOf(field: ArrowField): ForeignColumn {
  const { name, isNullable, dictionary } = field;
  // A run-end encoded field has the type of its values.
  const isRuns = field.type.kind === 'run end encoded';
  const { type } = isRuns ? field.children[1]! : field;
  const encoded = dictionary !== null ? ' in a dictionary' : isRuns ? ' in runs' : '';
  return {
    name,
    way: 'complete',
    stored: typeText(type) + encoded,
    reason: 'Arrow',
    nullable: isNullable,
    ...meaningOf(type),
  };
}

type Meaning = Pick<ForeignColumn, 'type' | 'values' | 'isUnsigned64' | 'isNull'>;

function meaningOf(type: ArrowType): Meaning {
  switch (type.kind) {
    case 'bool':
      return { type: 'bool', values: { kind: 'same' } };
    case 'int':
      if (type.bits === 64 && !type.isSigned)
        return { type: 'string', values: { kind: 'text' }, isUnsigned64: true };
      return { type: 'int', values: { kind: 'same' } };
    case 'float':
      return { type: 'float', values: { kind: 'same' } };
    case 'decimal': {
      const { type: fieldType, values } = decimalMeaning(type);
      return type.scale < 0 ? { type: 'string', values: { kind: 'text' } } : { type: fieldType, values };
    }
    case 'null':
      return { type: 'string', values: { kind: 'bytes' }, isNull: true };
    case 'bytes':
    case 'bytes view':
    case 'fixed bytes':
      return { type: 'string', values: { kind: 'bytes' } };
    case 'date':
      return { type: 'time', values: { kind: 'ticks', perMs: 1, ms: type.bits === 32 ? dayMs : 1 } };
    case 'timestamp': {
      const ticks = Number(type.perSecond);
      const values = ticks === 1 ? { perMs: 1, ms: 1000 } : { perMs: ticks / 1000, ms: 1 };
      return { type: 'time', values: { kind: 'ticks', ...values } };
    }
    case 'time of day':
    case 'duration':
    case 'interval':
      return { type: 'string', values: { kind: 'text' } };
    default:
      return { type: 'string', values: { kind: 'json' } };
  }
}

/** A type for display: `timestamp[us]`. */
function typeText(type: ArrowType): string {
  switch (type.kind) {
    case 'int':
      return `${type.isSigned ? '' : 'u'}int${type.bits}`;
    case 'float':
      return `float${type.bits}`;
    case 'decimal':
      return `decimal${type.bits}(${type.precision}, ${type.scale})`;
    case 'bytes':
      return (type.bits === 64 ? 'large ' : '') + (type.isText ? 'utf8' : 'binary');
    case 'bytes view':
      return `${type.isText ? 'utf8' : 'binary'} view`;
    case 'fixed bytes':
      return `binary(${type.width})`;
    case 'date':
      return `date${type.bits}`;
    case 'timestamp':
    case 'duration':
    case 'time of day':
      return `${type.kind}[${['s', 'ms', 'us', 'ns'][Math.round(Math.log10(Number(type.perSecond)) / 3)]}]`;
    default:
      return type.kind;
  }
}
