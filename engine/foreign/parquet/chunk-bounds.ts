import { physicalType } from '../../parquet/format.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { ForeignBound, ForeignChunk } from '../foreign-file.js';
import type { ColumnType } from './column-type.js';
import { ticksToMs } from './ticks.js';

type ChunkFacts = Pick<ForeignChunk, 'nullCount' | 'min' | 'max'>;
type Side = 'min' | 'max';

const decoder = new TextDecoder();

/** What is known of a column chunk without statistics. */
export const nothingKnown: ChunkFacts = { nullCount: null, min: null, max: null };

/**
 * What the `Statistics` of parquet.thrift say of a column chunk of `rows` rows, as values of the column's type. A bound is left out where
 * it is not sure to enclose all values.
 */
export function chunkFacts(statistics: ThriftFields, column: ColumnType, rows: number): ChunkFacts {
  const storedNulls = statistics.size(3, -1);
  if (storedNulls > rows) statistics.fail(`${storedNulls} rows without a value of ${rows}`);
  // The older fields are in the order of signed bytes, which is none of strings and of integers without a sign.
  const { type, isUnsigned } = column.parquet;
  const hasOldOrder =
    !isUnsigned && type !== physicalType.byteArray && type !== physicalType.fixedLengthBytes;
  const bytesOf = (id: number, oldId: number): Uint8Array | null =>
    statistics.binary(id) ?? (hasOldOrder ? statistics.binary(oldId) : null);
  const minBytes = bytesOf(6, 2);
  const maxBytes = bytesOf(5, 1);
  const min = minBytes === null ? null : boundOf(minBytes, column, 'min');
  const max = maxBytes === null ? null : boundOf(maxBytes, column, 'max');
  if (column.type !== 'float') return { nullCount: storedNulls < 0 ? null : storedNulls, min, max };
  // One that is no number spoils the other. What is no number has no value here, and no bound tells whether there is one.
  const isSpoilt = (minBytes === null) !== (min === null) || (maxBytes === null) !== (max === null);
  const isInteger = type !== physicalType.float && type !== physicalType.double;
  const allFinite = isInteger || (statistics.size(9, -1) === 0 && min !== null && max !== null);
  const nullCount = storedNulls === rows || (allFinite && storedNulls >= 0) ? storedNulls : null;
  return isSpoilt ? { nullCount, min: null, max: null } : { nullCount, min, max };
}

/** A bound as a value of the column's type; null where its bytes are none, or where it would not be sure. */
function boundOf(bytes: Uint8Array, column: ColumnType, side: Side): ForeignBound | null {
  const { type, isUnsigned, scale } = column.parquet;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (type) {
    case physicalType.boolean:
      return bytes.length === 1 ? { kind: 'int', value: bytes[0] === 0 ? '0' : '1' } : null;
    case physicalType.int32:
      if (bytes.length !== 4) return null;
      return integerBound(BigInt(isUnsigned ? view.getUint32(0, true) : view.getInt32(0, true)), column);
    case physicalType.int64:
      if (bytes.length !== 8) return null;
      return integerBound(isUnsigned ? view.getBigUint64(0, true) : view.getBigInt64(0, true), column);
    case physicalType.float:
      return bytes.length === 4 ? floatBound(view.getFloat32(0, true)) : null;
    case physicalType.double:
      return bytes.length === 8 ? floatBound(view.getFloat64(0, true)) : null;
    default:
      return column.values.kind === 'bytes' && scale === 0 ? textBound(bytes, side) : null;
  }
}

function integerBound(value: bigint, { type, values, parquet }: ColumnType): ForeignBound | null {
  switch (values.kind) {
    case 'same':
      return type === 'float'
        ? floatBound(Number(value) / 10 ** parquet.scale)
        : { kind: 'int', value: String(value) };
    case 'ticks':
      return { kind: 'int', value: String(ticksToMs(value, values)) };
    default:
      return null;
  }
}

function floatBound(value: number): ForeignBound | null {
  return Number.isFinite(value) ? { kind: 'float', value } : null;
}

/**
 * A bound of bytes for the texts that they become. Bytes that are no UTF-8 become U+FFFD (EF BF BD) there, which may change their order:
 * what they have in common with a bound that is ASCII, or below EF for the least, does not change. So a bound ends where that does, and
 * the greatest then counts up its last byte.
 */
function textBound(bytes: Uint8Array, side: Side): ForeignBound | null {
  const tooHigh = side === 'min' ? 0xef : 0x80;
  let end = bytes.findIndex((byte) => byte >= tooHigh);
  if (side === 'min') {
    if (end < 0) end = bytes.length;
    // Part of a character is none: what is left of it is smaller still.
    const kept = decoder.decode(bytes.subarray(0, end));
    const wrongAt = kept.indexOf('\ufffd');
    return { kind: 'text', value: wrongAt < 0 ? kept : kept.slice(0, wrongAt) };
  }
  if (end < 0) return { kind: 'text', value: decoder.decode(bytes) };
  while (end > 0 && bytes[end - 1] === 0x7f) end--;
  if (end === 0) return null;
  const raised = bytes.slice(0, end);
  raised[end - 1]!++;
  return { kind: 'text', value: decoder.decode(raised) };
}
