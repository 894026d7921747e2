import type { ChunkPlace, ColumnContent, FileColumn, Footer, FooterRowGroup } from './footer.js';
import { codecNumber, convertedType, encoding, pageType, physicalType, repetition } from './format.js';
import type { PhysicalType } from './format.js';
import { ThriftWriter, thriftType } from './thrift-writer.js';
import type { Codec } from './compression.js';

/** The form that readers parse: a name, `version`, and a build. It changes with what the files look like. */
const createdBy = 'logstrata version 1.0.0 (build segment-format-2)';

/** Version 2 tells readers to expect version 2 pages and the newer encodings. */
const fileVersion = 2;

/** How the values of a column are stored. */
export function physicalTypeOf(content: ColumnContent): PhysicalType {
  switch (content) {
    case 'cursor':
    case 'int':
    case 'time':
      return physicalType.int64;
    case 'float':
      return physicalType.double;
    case 'string':
      return physicalType.byteArray;
    case 'bool':
      return physicalType.boolean;
  }
}

/** The footer's structure `FileMetaData`, without the length and the magic number that follow it. */
export function writeFooter(footer: Footer): Uint8Array {
  const writer = new ThriftWriter();
  writer.begin();
  writer.i32(1, fileVersion);
  writer.list(2, thriftType.struct, footer.columns.length + 1);
  writer.begin();
  writer.binary(4, 'schema');
  writer.i32(5, footer.columns.length);
  writer.end();
  footer.columns.forEach((column, i) => writeSchemaElement(writer, column, i + 1));
  writer.i64(3, footer.rows);
  writer.list(4, thriftType.struct, footer.rowGroups.length);
  for (const group of footer.rowGroups) writeRowGroup(writer, group, footer.columns, footer.codec);
  writer.list(5, thriftType.struct, footer.keyValues.size);
  for (const [key, value] of footer.keyValues) {
    writer.begin();
    writer.binary(1, key);
    writer.binary(2, value);
    writer.end();
  }
  writer.binary(6, createdBy);
  // Readers believe min_value and max_value only where the order of a column is given: that of its type, here.
  writer.list(7, thriftType.struct, footer.columns.length);
  for (let i = 0; i < footer.columns.length; i++) {
    writer.begin();
    writer.begin(1);
    writer.end();
    writer.end();
  }
  writer.end();
  return writer.bytes().slice();
}

function writeSchemaElement(writer: ThriftWriter, column: FileColumn, fieldId: number): void {
  writer.begin();
  writer.i32(1, physicalTypeOf(column.content));
  writer.i32(3, column.content === 'cursor' ? repetition.required : repetition.optional);
  writer.binary(4, column.name);
  if (column.content === 'string') writer.i32(6, convertedType.utf8);
  if (column.content === 'time') writer.i32(6, convertedType.timestampMillis);
  writer.i32(9, fieldId);
  if (column.content === 'string') {
    writer.begin(10);
    writer.begin(1);
    writer.end();
    writer.end();
  }
  if (column.content === 'time') writeTimestampType(writer);
  writer.end();
}

function writeTimestampType(writer: ThriftWriter): void {
  writer.begin(10);
  writer.begin(8);
  writer.bool(1, true);
  writer.begin(2);
  writer.begin(1);
  writer.end();
  writer.end();
  writer.end();
  writer.end();
}

function writeRowGroup(
  writer: ThriftWriter,
  group: FooterRowGroup,
  columns: readonly FileColumn[],
  codec: Codec,
): void {
  writer.begin();
  writer.list(1, thriftType.struct, group.chunks.length);
  group.chunks.forEach((chunk, i) => {
    writer.begin();
    writer.i64(2, chunk.offset);
    writeColumnMetaData(writer, chunk, columns[i]!, codec);
    writer.end();
  });
  writer.i64(
    2,
    group.chunks.reduce((sum, chunk) => sum + chunk.uncompressedBytes, 0),
  );
  writer.i64(3, group.rows);
  writer.i64(5, Math.min(...group.chunks.map((chunk) => chunk.offset)));
  writer.i64(
    6,
    group.chunks.reduce((sum, chunk) => sum + chunk.bytes, 0),
  );
  writer.end();
}

function writeColumnMetaData(
  writer: ThriftWriter,
  chunk: ChunkPlace,
  column: FileColumn,
  codec: Codec,
): void {
  const hasDictionary = chunk.dictionaryPageBytes > 0;
  writer.begin(3);
  writer.i32(1, physicalTypeOf(column.content));
  const encodings = new Set([...(hasDictionary ? [encoding.plain] : []), chunk.dataEncoding, encoding.rle]);
  writer.list(2, thriftType.i32, encodings.size);
  for (const number of encodings) writer.i32Element(number);
  writer.list(3, thriftType.binary, 1);
  writer.binaryElement(column.name);
  writer.i32(4, codecNumber[codec]);
  writer.i64(5, chunk.rows);
  writer.i64(6, chunk.uncompressedBytes);
  writer.i64(7, chunk.bytes);
  writer.i64(9, chunk.offset + chunk.dictionaryPageBytes);
  if (hasDictionary) writer.i64(11, chunk.offset);
  writer.begin(12);
  writer.i64(3, chunk.nullCount);
  if (chunk.bounds !== null) {
    writer.binary(5, chunk.bounds.max);
    writer.binary(6, chunk.bounds.min);
  }
  writer.end();
  if (hasDictionary) writeEncodingStats(writer);
  writer.end();
}

/** Says that every value is in the dictionary, which lets readers answer from it alone. */
function writeEncodingStats(writer: ThriftWriter): void {
  writer.list(13, thriftType.struct, 2);
  for (const [page, pageEncoding] of [
    [pageType.dictionary, encoding.plain],
    [pageType.dataV2, encoding.rleDictionary],
  ] as const) {
    writer.begin();
    writer.i32(1, page);
    writer.i32(2, pageEncoding);
    writer.i32(3, 1);
    writer.end();
  }
}
