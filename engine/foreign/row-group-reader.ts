import { physicalType, codecNumber, encoding } from '../parquet/format.js';
import type { ThriftFields } from '../parquet/thrift-reader.js';
import type { ForeignBound, ForeignChunk, ForeignRowGroup } from './foreign-file.js';
import type { ColumnType } from './schema-columns.js';
import type { SchemaColumn } from './schema-reader.js';
import { ticksToMs } from './stored-type.js';
import { foreignPartsMax } from '../core/limits.js';
import { offsetIndexBytesMax } from './offset-index.js';

type ChunkFacts = Pick<ForeignChunk, 'nullCount' | 'min' | 'max'>;
type Side = 'min' | 'max';

const decoder = new TextDecoder();

/** The facts of a column chunk without statistics. */
const nothingKnown: ChunkFacts = { nullCount: null, min: null, max: null };

/**
 * Reads the `Statistics` (parquet.thrift) of a column chunk of `rows` rows, as values of the column's type. A bound that is
 * not sure to enclose all values is null.
 */
function chunkFacts(statistics: ThriftFields, column: ColumnType, rows: number): ChunkFacts {
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

/** Names of the known codecs that our own kernels do not decompress. */
const codecsWithoutKernel = new Map<number, string>([
  [codecNumber.lzo, 'LZO'],
  [codecNumber.brotli, 'Brotli'],
]);

/** Pages begin after the magic number at the beginning of the file. */
const pagesBegin = 4;

/** Takes the `RowGroup`s of parquet.thrift one by one. */
export class RowGroupReader {
  readonly rowGroups: ForeignRowGroup[] = [];
  /** For each column that our own kernels can't read in some row group, the reason. */
  readonly reasons = new Map<SchemaColumn, string>();
  /** Number of rows of all row groups so far. */
  rows = 0;

  /**
   * @param columns the columns of the schema
   * @param leaves number of column chunks per row group
   * @param pagesEnd offset of the footer, which all pages end before
   */
  constructor(
    private readonly columns: readonly SchemaColumn[],
    private readonly leaves: number,
    private readonly pagesEnd: number,
  ) {}

  /** Adds the next row group. Throws `FormatError` where it contradicts the schema or reaches beyond the file. */
  add(group: ThriftFields, index: number, length: number): void {
    if (length * this.leaves > foreignPartsMax)
      group.fail(`the file has ${length} row groups of ${this.leaves} columns, more than can be read`);
    const rows = group.size(3);
    const chunks = group.structs(1);
    if (chunks.length !== this.leaves)
      group.fail(
        `row group ${index} has ${chunks.length} column chunks, but the schema has ${this.leaves} columns`,
      );
    this.rows += rows;
    this.rowGroups.push({
      rows,
      chunks: this.columns.map((column) => {
        const { firstLeaf, leaves } = column.node;
        const own = chunks.slice(firstLeaf, firstLeaf + leaves);
        const parts = own.map((chunk) => this.#readChunk(chunk, column, rows, index));
        return column.flat === null ? enclosing(parts) : parts[0]!;
      }),
    });
  }

  /** @param rows number of rows of the row group */
  #readChunk(chunk: ThriftFields, column: SchemaColumn, rows: number, rowGroup: number): ForeignChunk {
    const place = `column "${column.name}" of row group ${rowGroup}`;
    if ((chunk.binary(1)?.length ?? 0) > 0)
      chunk.fail(`${place} is stored in another file, "${chunk.text(1)}", which is not supported`);
    if (chunk.has(8) || !chunk.has(3)) {
      this.reasons.set(column, 'encrypted');
      return { offset: 0, bytes: 0, codec: 0, uncompressedBytes: 0, ...nothingKnown, bloomFilter: null };
    }
    const fields = chunk.struct(3);
    const { flat } = column;
    if (flat !== null && fields.size(1) !== flat.parquet.type)
      fields.fail(`${place} has a different physical type than the schema`);
    const codec = fields.size(4);
    const reason = reasonOf(codec, fields.integers(2));
    if (reason !== '' && !this.reasons.has(column)) this.reasons.set(column, reason);
    // For a chunk without rows, some writers store offset 0.
    const bytes = rows === 0 ? 0 : fields.size(7);
    const dataAt = fields.size(9);
    // Without a dictionary some writers store 0; with one, some store 0 although the dictionary is the first page.
    const dictionaryAt = fields.size(11, 0);
    const offset = dictionaryAt >= pagesBegin ? Math.min(dictionaryAt, dataAt) : dataAt;
    if (bytes > 0 && (offset < pagesBegin || offset + bytes > this.pagesEnd))
      fields.fail(
        `${place} claims bytes ${offset} to ${offset + bytes}, but the pages end at byte ${this.pagesEnd}`,
      );
    const facts = flat === null || !fields.has(12) ? nothingKnown : chunkFacts(fields.struct(12), flat, rows);
    return {
      offset,
      bytes,
      codec,
      uncompressedBytes: fields.size(6),
      ...facts,
      bloomFilter: flat === null ? null : this.#bloomFilterOf(fields),
      ...this.#offsetIndexOf(chunk),
    };
  }

  /** An index that lies outside the file is left out, as a filter is. */
  #offsetIndexOf(chunk: ThriftFields): Pick<ForeignChunk, 'offsetIndex'> {
    if (!chunk.has(4) || !chunk.has(5)) return {};
    const offset = chunk.size(4);
    const bytes = chunk.size(5);
    const isPossible =
      offset >= pagesBegin && offset + bytes <= this.pagesEnd && bytes <= offsetIndexBytesMax;
    return isPossible && bytes > 0 ? { offsetIndex: { offset, bytes } } : {};
  }

  /** Filters are optional: one that lies outside the file is left out. */
  #bloomFilterOf(fields: ThriftFields): ForeignChunk['bloomFilter'] {
    if (!fields.has(14)) return null;
    const offset = fields.size(14);
    const bytes = fields.size(15, 0);
    return offset < pagesBegin || offset + bytes > this.pagesEnd ? null : { offset, bytes };
  }
}

/** Why our own kernels can't read a chunk with this codec and these encodings; empty where they can. */
function reasonOf(codec: number, encodings: readonly number[]): string {
  if (codecsWithoutKernel.has(codec) || codec > codecNumber.lz4)
    return codecsWithoutKernel.get(codec) ?? `codec ${codec}`;
  const unknown = encodings.find((number) => number > encoding.byteStreamSplit);
  return unknown === undefined ? '' : `encoding ${unknown}`;
}

/** The chunk of a nested column: the byte range that encloses all of its leaf chunks. */
function enclosing(chunks: readonly ForeignChunk[]): ForeignChunk {
  const filled = chunks.filter(({ bytes }) => bytes > 0);
  const offset = filled.reduce((least, chunk) => Math.min(least, chunk.offset), Infinity);
  const end = filled.reduce((most, chunk) => Math.max(most, chunk.offset + chunk.bytes), 0);
  return {
    offset: filled.length === 0 ? 0 : offset,
    bytes: filled.length === 0 ? 0 : end - offset,
    codec: chunks[0]!.codec,
    uncompressedBytes: chunks.reduce((sum, chunk) => sum + chunk.uncompressedBytes, 0),
    ...nothingKnown,
    bloomFilter: null,
    leaves: chunks.map(({ offset, bytes, codec, offsetIndex }) => ({ offset, bytes, codec, offsetIndex })),
  };
}
