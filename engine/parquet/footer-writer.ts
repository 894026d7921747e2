import type { ChunkPlace, ColumnContent, FileColumn, Footer, FooterRowGroup } from './footer.js';
import { codecNumber, convertedType, encoding, pageType, physicalType, repetition } from './format.js';
import type { PhysicalType } from './format.js';
import { i32, i64, type ThriftStruct, writeThrift } from './thrift-writer.js';
import type { Codec } from './compression.js';

/** In the form that Parquet readers parse: a name, `version`, and a build. The build changes with the format of the files. */
const createdBy = 'logstrata version 1.0.0 (build segment-format-2)';

/** Version 2 announces version 2 data pages and the newer encodings. */
const fileVersion = 2;

/** The physical type that the values of a column are stored with. */
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

/** The structure `FileMetaData` of the footer, without the length and the magic number that follow it. */
export function writeFooter({ columns, rows, codec, rowGroups, keyValues }: Footer): Uint8Array {
  return writeThrift({
    1: i32(fileVersion),
    2: [{ 4: 'schema', 5: i32(columns.length) }, ...columns.map(schemaElement)],
    3: i64(rows),
    4: rowGroups.map((group) => rowGroupOf(group, columns, codec)),
    5: Array.from(keyValues, ([key, value]) => ({ 1: key, 2: value })),
    6: createdBy,
    // Readers only use min_value and max_value where the order of a column is given. Here it is the order of its type.
    7: columns.map(() => ({ 1: {} })),
  });
}

function schemaElement({ name, content }: FileColumn, index: number): ThriftStruct {
  const isText = content === 'string';
  const isTime = content === 'time';
  const utcMillis = { 1: true, 2: { 1: {} } };
  return {
    1: i32(physicalTypeOf(content)),
    3: i32(content === 'cursor' ? repetition.required : repetition.optional),
    4: name,
    6: isText ? i32(convertedType.utf8) : isTime ? i32(convertedType.timestampMillis) : undefined,
    9: i32(index + 1),
    10: isText ? { 1: {} } : isTime ? { 8: utcMillis } : undefined,
  };
}

function rowGroupOf(
  { rows, chunks }: FooterRowGroup,
  columns: readonly FileColumn[],
  codec: Codec,
): ThriftStruct {
  return {
    1: chunks.map((chunk, i) => ({ 2: i64(chunk.offset), 3: columnMetaData(chunk, columns[i]!, codec) })),
    2: i64(chunks.reduce((sum, chunk) => sum + chunk.uncompressedBytes, 0)),
    3: i64(rows),
    5: i64(Math.min(...chunks.map((chunk) => chunk.offset))),
    6: i64(chunks.reduce((sum, chunk) => sum + chunk.bytes, 0)),
  };
}

function columnMetaData(chunk: ChunkPlace, { name, content }: FileColumn, codec: Codec): ThriftStruct {
  const { bloomFilter } = chunk;
  const hasDictionary = chunk.dictionaryPageBytes > 0;
  const encodings = new Set([...(hasDictionary ? [encoding.plain] : []), chunk.dataEncoding, encoding.rle]);
  return {
    1: i32(physicalTypeOf(content)),
    2: Array.from(encodings, i32),
    3: [name],
    4: i32(codecNumber[codec]),
    5: i64(chunk.rows),
    6: i64(chunk.uncompressedBytes),
    7: i64(chunk.bytes),
    9: i64(chunk.offset + chunk.dictionaryPageBytes),
    11: hasDictionary ? i64(chunk.offset) : undefined,
    12: { 3: i64(chunk.nullCount), 5: chunk.bounds?.max, 6: chunk.bounds?.min },
    13: hasDictionary ? dictionaryEncodings : undefined,
    14: bloomFilter === undefined ? undefined : i64(bloomFilter.offset),
    15: bloomFilter === undefined ? undefined : i32(bloomFilter.bytes),
  };
}

/** Says that all values are in the dictionary, so that readers may answer from the dictionary alone. */
const dictionaryEncodings = [
  { 1: i32(pageType.dictionary), 2: i32(encoding.plain), 3: i32(1) },
  { 1: i32(pageType.dataV2), 2: i32(encoding.rleDictionary), 3: i32(1) },
];
