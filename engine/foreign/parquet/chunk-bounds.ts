import { physicalType } from '../../parquet/format.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { ForeignBound, ForeignChunk } from '../foreign-file.js';
import type { ColumnType } from './column-type.js';
import { ticksToMs } from './ticks.js';

type ChunkFacts = Pick<ForeignChunk, 'nullCount' | 'min' | 'max'>;
type Side = 'min' | 'max';

const decoder = new TextDecoder();

/** The facts of a column chunk without statistics. */
export const nothingKnown: ChunkFacts = { nullCount: null, min: null, max: null };

/**
 * Reads the `Statistics` (parquet.thrift) of a column chunk of `rows` rows, as values of the column's type. A bound that is
 * not sure to enclose all values is null.
 */
export function chunkFacts(statistics: ThriftFields, column: ColumnType, rows: number): ChunkFacts {
  const storedNulls = statistics.size(3, -1);
  if (storedNulls > rows) statistics.fail(`the statistics count ${storedNulls} nulls in ${rows} rows`);
  // The deprecated `min` and `max` compare as signed bytes, which is not the order of strings and unsigned integers.
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
  // NaN and infinite values are null in our columns. A bound that is not finite makes the other one useless too. Finite
  // bounds do not rule out NaN, so the null count is known only where the NaN count (field 9) is 0.
  const isSpoilt = (minBytes === null) !== (min === null) || (maxBytes === null) !== (max === null);
  const isInteger = type !== physicalType.float && type !== physicalType.double;
  const allFinite = isInteger || (statistics.size(9, -1) === 0 && min !== null && max !== null);
  const nullCount = storedNulls === rows || (allFinite && storedNulls >= 0) ? storedNulls : null;
  return isSpoilt ? { nullCount, min: null, max: null } : { nullCount, min, max };
}

/** A bound as a value of the column's type; null where the bytes are invalid, or where the bound would not be sure. */
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
 * A bound of byte strings, for the texts that they are decoded to. Decoding turns invalid UTF-8 into U+FFFD (EF BF BD),
 * which may change the order. A prefix that values share with the bound keeps its order where it is ASCII (`max`), or below
 * EF (`min`). So the bound is cut at the first byte that is not, and the last byte of a cut `max` is incremented.
 */
function textBound(bytes: Uint8Array, side: Side): ForeignBound | null {
  const tooHigh = side === 'min' ? 0xef : 0x80;
  let end = bytes.findIndex((byte) => byte >= tooHigh);
  if (side === 'min') {
    if (end < 0) end = bytes.length;
    // Also cut off an incomplete character: a shorter `min` is only lower.
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
