import { foreignColumnsMax, jsonDepthMax } from '../core/limits.js';
import type { FlatTable } from './flat-table.js';
import type { ForeignColumn } from './foreign-file.js';
import { fieldOf, type StoredType } from './stored-type.js';

/** Ticks per second, by the number of `TimeUnit`. */
const perSecond = [1, 1000, 1_000_000, 1_000_000_000] as const;

/** A type of Schema.fbs (https://github.com/apache/arrow/blob/main/format/Schema.fbs). */
export type ArrowType =
  | { readonly kind: 'null' | 'boolean' }
  | { readonly kind: 'struct' | 'run end encoded' }
  | { readonly kind: 'int'; readonly bits: number; readonly isSigned: boolean }
  | { readonly kind: 'float'; readonly bits: number }
  | { readonly kind: 'decimal'; readonly bits: number; readonly precision: number; readonly scale: number }
  /** Text or bytes, with offsets of `bits` bits. */
  | { readonly kind: 'bytes'; readonly isText: boolean; readonly bits: number }
  | { readonly kind: 'bytes view'; readonly isText: boolean }
  | { readonly kind: 'fixed bytes'; readonly width: number; readonly isUuid?: true }
  /** Days in 32 bits, or milliseconds in 64. */
  | { readonly kind: 'date'; readonly bits: number }
  | { readonly kind: 'time of day'; readonly bits: number; readonly perSecond: number }
  | { readonly kind: 'timestamp' | 'duration'; readonly perSecond: number }
  /** By `unit`: 0 months; 1 days and milliseconds; 2 months, days and nanoseconds. */
  | { readonly kind: 'interval'; readonly unit: number }
  | { readonly kind: 'list' | 'list view'; readonly bits: number }
  | { readonly kind: 'map' }
  | { readonly kind: 'fixed list'; readonly length: number }
  | { readonly kind: 'union'; readonly isDense: boolean; readonly typeIds: readonly number[] };

/** A field of a schema. */
export interface ArrowField {
  readonly name: string;
  readonly isNullable: boolean;
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  /** Set where values are codes, i.e. indexes of dictionary entries; null otherwise. */
  readonly dictionary: { readonly id: bigint; readonly codes: ArrowType } | null;
}

/** Reads the fields of a `Schema`. Throws `FormatError` for one that is invalid, too large, or big-endian. */
export function readArrowSchema(schema: FlatTable): ArrowField[] {
  if (schema.short(0, 0) !== 0) schema.fail('big-endian files are not supported');
  let fields = 0;
  const read = (table: FlatTable, depth: number): ArrowField => {
    if (++fields > foreignColumnsMax) table.fail(`more than ${foreignColumnsMax} fields`);
    if (depth > jsonDepthMax) table.fail(`fields are nested more than ${jsonDepthMax} deep`);
    const type = withMeaning(readType(table), table);
    const children = table.tables(5).map((child) => read(child, depth + 1));
    checkChildren(table, type, children);
    const encoding = table.table(4);
    const codes = encoding?.table(1);
    const dictionary =
      encoding === null
        ? null
        : {
            id: encoding.long(0),
            codes: codes === null || codes === undefined ? defaultCodes : intType(codes),
          };
    return { name: table.text(0), isNullable: table.bool(1, false), type, children, dictionary };
  };
  return schema.tables(1).map((field) => read(field, 1));
}

const defaultCodes: ArrowType = { kind: 'int', bits: 32, isSigned: true };

function intType(type: FlatTable): ArrowType {
  const bits = type.int(0, 0);
  if (![8, 16, 32, 64].includes(bits)) type.fail(`integers of ${bits} bits`);
  return { kind: 'int', bits, isSigned: type.bool(1, false) };
}

/** Reads the union `Type`: its number, and the table that it refers to. */
function readType(field: FlatTable): ArrowType {
  const number = field.byte(2, 0);
  const type = field.table(3) ?? field.fail('a field has no type');
  switch (number) {
    case 1:
      return { kind: 'null' };
    case 2:
      return intType(type);
    case 3:
      return { kind: 'float', bits: [16, 32, 64][type.short(0, 0)] ?? type.fail('the precision is unknown') };
    case 4:
    case 5:
      return { kind: 'bytes', isText: number === 5, bits: 32 };
    case 6:
      return { kind: 'boolean' };
    case 7: {
      const bits = type.int(2, 128);
      if (![32, 64, 128, 256].includes(bits)) type.fail(`decimals of ${bits} bits`);
      const scale = type.int(1, 0);
      if (Math.abs(scale) > 255) type.fail(`decimals with ${scale} digits after the point are not supported`);
      return { kind: 'decimal', bits, precision: type.int(0, 0), scale };
    }
    case 8:
      return { kind: 'date', bits: type.short(0, 1) === 0 ? 32 : 64 };
    case 9: {
      const bits = type.int(1, 32);
      if (bits !== 32 && bits !== 64) type.fail(`times of ${bits} bits`);
      return { kind: 'time of day', bits, perSecond: unitOf(type, 1) };
    }
    case 10:
      return { kind: 'timestamp', perSecond: unitOf(type, 0) };
    case 11:
      return { kind: 'interval', unit: type.short(0, 0) };
    case 12:
    case 21:
      return { kind: 'list', bits: number === 12 ? 32 : 64 };
    case 13:
      return { kind: 'struct' };
    case 14:
      return { kind: 'union', isDense: type.short(0, 0) === 1, typeIds: type.ints(1) };
    case 15:
      return { kind: 'fixed bytes', width: sizeOf(type) };
    case 16:
      return { kind: 'fixed list', length: sizeOf(type) };
    case 17:
      return { kind: 'map' };
    case 18:
      return { kind: 'duration', perSecond: unitOf(type, 1) };
    case 19:
    case 20:
      return { kind: 'bytes', isText: number === 20, bits: 64 };
    case 22:
      return { kind: 'run end encoded' };
    case 23:
    case 24:
      return { kind: 'bytes view', isText: number === 24 };
    case 25:
    case 26:
      return { kind: 'list view', bits: number === 25 ? 32 : 64 };
    default:
      return field.fail(`the type ${number} is unknown`);
  }
}

/** A type with the meaning that an extension gives to it (https://arrow.apache.org/docs/format/CanonicalExtensions.html). */
function withMeaning(type: ArrowType, field: FlatTable): ArrowType {
  if (type.kind !== 'fixed bytes' || type.width !== 16) return type;
  const isUuid = field
    .tables(6)
    .some((pair) => pair.text(0) === 'ARROW:extension:name' && pair.text(1) === 'arrow.uuid');
  return isUuid ? { ...type, isUuid } : type;
}

function sizeOf(type: FlatTable): number {
  const size = type.int(0, 0);
  return size < 0 ? type.fail(`the length ${size} is not valid`) : size;
}

function unitOf(type: FlatTable, absent: number): number {
  return perSecond[type.short(0, absent)] ?? type.fail('the unit of time is unknown');
}

function checkChildren(table: FlatTable, type: ArrowType, children: readonly ArrowField[]): void {
  const { length } = children;
  switch (type.kind) {
    case 'list':
    case 'list view':
    case 'fixed list':
      if (length !== 1) table.fail(`a list must have one field, not ${length}`);
      return;
    case 'map':
      if (length !== 1 || children[0]!.children.length !== 2 || children[0]!.type.kind !== 'struct')
        table.fail('a map does not consist of pairs');
      return;
    case 'run end encoded':
      if (length !== 2 || children[0]!.type.kind !== 'int')
        table.fail('run-end-encoded values have no run ends or no values');
      return;
    case 'struct':
    case 'union':
      return;
    default:
      if (length !== 0) table.fail(`values of the type "${type.kind}" can't have child fields`);
  }
}

/** The column of a top-level field, as `columnTypeOf` gives it for Parquet. All Arrow columns are decoded in the complete way. */
export function arrowColumnOf(field: ArrowField): ForeignColumn {
  const { name, isNullable, dictionary } = field;
  // A run-end encoded field has the type of its values.
  const isRuns = field.type.kind === 'run end encoded';
  const { type } = isRuns ? field.children[1]! : field;
  const isUnsigned64 = type.kind === 'int' && type.bits === 64 && !type.isSigned;
  const encoded = dictionary !== null ? ' in a dictionary' : isRuns ? ' in runs' : '';
  return {
    name,
    way: 'complete',
    stored: typeText(type) + encoded,
    reason: 'Arrow',
    nullable: isNullable,
    ...fieldOf(storedTypeOf(type)),
    ...(isUnsigned64 ? { type: 'string', values: { kind: 'text' }, isUnsigned64 } : {}),
    ...(type.kind === 'null' ? { isNull: true } : {}),
    ...(type.kind === 'struct' && dictionary === null ? { parts: field.children.map(arrowColumnOf) } : {}),
  };
}

/** What values of a type mean. */
export function storedTypeOf(type: ArrowType): StoredType {
  switch (type.kind) {
    case 'fixed bytes':
      return { kind: type.isUuid === true ? 'UUID' : 'binary' };
    case 'bytes':
    case 'bytes view':
      return { kind: type.isText ? 'bytes' : 'binary' };
    case 'null':
    case 'boolean':
    case 'int':
    case 'float':
    case 'decimal':
    case 'date':
    case 'time of day':
    case 'timestamp':
    case 'duration':
    case 'interval':
      return type;
    default:
      return { kind: 'nested' };
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
      return type.isUuid === true ? 'uuid' : `binary(${type.width})`;
    case 'date':
      return `date${type.bits}`;
    case 'timestamp':
    case 'duration':
    case 'time of day':
      return `${type.kind}[${['s', 'ms', 'us', 'ns'][Math.round(Math.log10(type.perSecond) / 3)]}]`;
    default:
      return type.kind;
  }
}
