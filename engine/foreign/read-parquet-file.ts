import {
  withDistinctNames,
  type ForeignChunk,
  type ForeignColumn,
  type ForeignFile,
  type ForeignRowGroup,
} from './foreign-file.js';
import { FormatError, magic, physicalType, tailBytes } from '../parquet/format.js';
import { readThrift, type ThriftBounds, type ThriftFields } from '../parquet/thrift-reader.js';
import { LogstrataError } from '../core/errors.js';
import { metadataBytesMax, int64Max } from '../core/limits.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import { contentHash, withForeignSource, withOffset, type ForeignSource } from './foreign-source.js';
import type { ColumnType } from './schema-columns.js';
import { SchemaReader, type SchemaColumn } from './schema-reader.js';
import { RowGroupReader } from './row-group-reader.js';

/** Bytes that are read from the end of a file at first: most footers fit. */
const tailReadBytes = 64 * 1024;
/** The magic number of a file whose footer is encrypted. */
const encryptedMagic = 'PARE';
/** Size of the magic numbers at both ends and of the footer's length. */
const fileBytesMin = magic.length + tailBytes;

/** Number of column chunks that identify a file besides its footer, which may have the bounds of other values, or none; and of bytes at both ends of each. */
const sampledChunksMax = { bounded: 16, unbounded: 64 };
const sampledBytes = 256;

/** Limits on the number of Thrift values: in the footer outside its lists of columns and row groups, and per column of a row group. */
const footerValuesMax = 100_000;
const chunkValuesMax = 1000;

/**
 * Describes a Parquet file by its footer. Throws `DamageError` with the path and offset for a malformed file, `unsupported`
 * for an encrypted footer, `not_found` and `io`.
 */
export async function readParquetFile(place: ForeignPlace): Promise<ForeignFile> {
  return await withForeignSource(place, async (source) => {
    const { footer, footerAt } = await findFooter(source);
    const file = withOffset(footerAt, () => describeFooter(footer, footerAt));
    const chunks = file.rowGroups.flatMap(({ chunks }) => chunks);
    const isBounded = chunks.some(({ min, max }) => min !== null && max !== null && min.value !== max.value);
    // An object's ETag tells other values, and each sample of it would be a request.
    if (isBounded && place.copy !== undefined) return file;
    const sampled = chunks.slice(0, sampledChunksMax[isBounded ? 'bounded' : 'unbounded']);
    const sample = contentHash(await sampleOf(sampled, source));
    return { ...file, footerHash: `${file.footerHash}+${sample}` };
  });
}

/** The first and last bytes of column chunks: footers may be equal where values are not. */
async function sampleOf(chunks: readonly ForeignChunk[], source: ForeignSource): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (const { offset, bytes } of chunks) {
    const length = Math.min(bytes, sampledBytes);
    parts.push(await source.read(offset, length), await source.read(offset + bytes - length, length));
  }
  return Buffer.concat(parts);
}

async function findFooter(source: ForeignSource): Promise<{ footer: Uint8Array; footerAt: number }> {
  const { path, size } = source;
  if (size < fileBytesMin) throw new FormatError(`the file has ${size} bytes, too few for a Parquet file`, 0);
  const tailReadLength = Math.min(size, tailReadBytes);
  const tail = await source.read(size - tailReadLength, tailReadLength);
  const ending = tail.subarray(-magic.length);
  if (Buffer.from(ending).toString('latin1') === encryptedMagic)
    throw new LogstrataError(
      'unsupported',
      `${path} has an encrypted footer; encrypted files are not supported`,
      { path },
    );
  if (Buffer.compare(ending, magic) !== 0) {
    const expected =
      'the file does not end with "PAR1": it is not a Parquet file, is truncated, or is still being written';
    throw new FormatError(expected, size - magic.length);
  }
  const footerBytes = new DataView(tail.buffer, tail.byteOffset).getUint32(tail.length - tailBytes, true);
  const footerAt = size - tailBytes - footerBytes;
  const refuse = (problem: string): never => {
    throw new FormatError(`the footer has ${footerBytes} bytes${problem}`, size - tailBytes);
  };
  if (footerAt < magic.length) refuse(`, but the file has only ${size}`);
  if (footerBytes > metadataBytesMax) refuse(`, more than the maximum of ${metadataBytesMax}`);
  if (footerBytes + tailBytes > tail.length)
    return { footer: await source.read(footerAt, footerBytes), footerAt };
  return { footer: tail.subarray(tail.length - tailBytes - footerBytes, tail.length - tailBytes), footerAt };
}

function describeFooter(footer: Uint8Array, footerAt: number): ForeignFile {
  const { fields, schema, rowGroups } = readFooter(footer, footerAt);
  const orders = fields.structs(7);
  const { columns, groups } = decide(schema.columns, rowGroups, (leaf) => {
    const order = orders[leaf];
    // TYPE_ORDER, or IEEE_754_TOTAL_ORDER. Bounds in an unknown order mean nothing.
    return order === undefined || order.has(1) || order.has(2);
  });
  return {
    format: 'parquet',
    // `FileMetaData.num_rows` is wrong in some files.
    rows: rowGroups.rows,
    footerHash: contentHash(footer),
    writtenBy: fields.text(6),
    columns: withDistinctNames(columns),
    rowGroups: groups,
  };
}

/** Reads the structure `FileMetaData`, which is at offset `footerAt` of the file. Throws `FormatError` for an invalid one. */
function readFooter(
  footer: Uint8Array,
  footerAt: number,
): { fields: ThriftFields; schema: SchemaReader; rowGroups: RowGroupReader } {
  const schema = new SchemaReader();
  let rowGroups: RowGroupReader | undefined;
  const reader = (): RowGroupReader =>
    (rowGroups ??= new RowGroupReader(schema.columns, schema.leaves, footerAt));
  const bounds: ThriftBounds = {
    valuesMax: footerValuesMax,
    handedOver: new Map([
      [
        2,
        {
          valuesMax: () => chunkValuesMax,
          receive: (element, index, length) => schema.add(element, index, length),
        },
      ],
      [
        4,
        {
          valuesMax: () => (schema.leaves + 1) * chunkValuesMax,
          receive: (group, index, length) => reader().add(group, index, length),
        },
      ],
    ]),
  };
  const { fields } = readThrift(footer, 0, bounds);
  schema.end(fields);
  return { fields, schema, rowGroups: reader() };
}

/** Settles the columns now that all row groups are known, and removes bounds that mean nothing. */
function decide(
  schemaColumns: readonly SchemaColumn[],
  { rowGroups, reasons }: RowGroupReader,
  isOrderKnown: (leaf: number) => boolean,
): { columns: ForeignColumn[]; groups: ForeignRowGroup[] } {
  const columns = schemaColumns.map((column, i) =>
    asColumn(column, reasons.get(column), hasLargeIntegers(column, i, rowGroups)),
  );
  const isBounded = columns.map(
    ({ values }, i) => values.kind !== 'text' && isOrderKnown(schemaColumns[i]!.node.firstLeaf),
  );
  if (isBounded.every(Boolean)) return { columns, groups: rowGroups };
  const groups = rowGroups.map(({ rows, chunks }) => ({
    rows,
    chunks: chunks.map((chunk, i) => (isBounded[i]! ? chunk : { ...chunk, min: null, max: null })),
  }));
  return { columns, groups };
}

/** Whether a column of unsigned 64-bit integers may hold some above the range of `int`. */
function hasLargeIntegers(
  column: SchemaColumn,
  index: number,
  rowGroups: readonly ForeignRowGroup[],
): boolean {
  if (column.flat === null || !isUnsigned64(column.flat)) return false;
  return rowGroups.some(({ rows, chunks }) => {
    const { max, nullCount } = chunks[index]!;
    if (nullCount === rows) return false;
    return max?.kind !== 'int' || BigInt(max.value) > int64Max;
  });
}

function asColumn(
  { name, id, isNullable, flat, stored, node }: SchemaColumn,
  otherReason: string | undefined,
  isLarge: boolean,
): ForeignColumn {
  const common = { name, ...(id === undefined ? {} : { id }), stored, nullable: isNullable, node };
  if (flat === null)
    return { ...common, type: 'string', way: 'complete', reason: 'nested', values: { kind: 'json' } };
  const { parquet } = flat;
  const unsigned = isUnsigned64(flat) ? { isUnsigned64: true as const } : {};
  const nothing = flat.isNull === true ? { isNull: true as const } : {};
  if (isLarge) {
    const reason = otherReason ?? 'integers that may be above 2^63 - 1';
    return {
      ...common,
      ...unsigned,
      type: 'string',
      way: 'complete',
      reason,
      values: { kind: 'text' },
      parquet,
    };
  }
  const reason = flat.reason !== '' ? flat.reason : (otherReason ?? '');
  const way = reason === '' ? 'fast' : 'complete';
  return { ...common, ...unsigned, ...nothing, type: flat.type, way, reason, values: flat.values, parquet };
}

function isUnsigned64({ type, parquet }: ColumnType): boolean {
  return type === 'int' && parquet.isUnsigned && parquet.type === physicalType.int64;
}
