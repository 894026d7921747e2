import type { Bounds } from './statistics.js';
import type { Codec } from './compression.js';
import { codecNumber, convertedType, physicalType, encoding, pageType, repetition } from './format.js';
import { fieldTypes, typeFacts, type FieldType } from '../core/schema.js';
import { readThrift, type ThriftFields } from './thrift-reader.js';
import { i32, i64, type ThriftStruct, writeThrift } from './thrift-writer.js';

/**
 * Name of the column of positions, which is the first column of every file. It cannot clash with a field, because names of fields begin
 * with a letter.
 */
export const cursorColumn = '_cursor';

/** What a column of the file holds. `cursor` and `time` are integers with their own encoding and schema. */
export type ColumnContent = 'cursor' | FieldType;

const cursorFacts = {
  ...typeFacts.int,
  parquet: { ...typeFacts.int.parquet, encoding: 'ascending' },
} as const;

/** What is known of the type of a column's values. Positions are integers. */
export function contentFacts(content: ColumnContent): (typeof typeFacts)[FieldType] {
  return content === 'cursor' ? cursorFacts : typeFacts[content];
}

/** A column of a file. */
export interface FileColumn {
  readonly name: string;
  readonly content: ColumnContent;
}

/** The description of a column chunk in the footer. Offsets count from the start of the file. */
export interface ChunkPlace {
  readonly offset: number;
  /** Bytes of all pages with their headers. */
  readonly bytes: number;
  /** 0 when there is no dictionary page. */
  readonly dictionaryPageBytes: number;
  readonly uncompressedBytes: number;
  readonly dataEncoding: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly bounds: Bounds | null;
  /** Parquet's Bloom filter of the chunk, with its header. `readFooter` does not read it: this program's readers find it elsewhere. */
  readonly bloomFilter?: { readonly offset: number; readonly bytes: number } | undefined;
}

/** A row group, as the footer describes it. */
export interface FooterRowGroup {
  readonly rows: number;
  /** One for each column of the file, in the same order. */
  readonly chunks: readonly ChunkPlace[];
}

/** Everything that the footer of a file says. */
export interface Footer {
  readonly columns: readonly FileColumn[];
  readonly rows: number;
  readonly codec: Codec;
  readonly rowGroups: readonly FooterRowGroup[];
  readonly keyValues: ReadonlyMap<string, string>;
}

/** Reads the structure that `writeFooter` writes. Throws `FormatError` where it is malformed or was written by another program. */
export function readFooter(bytes: Uint8Array): Footer {
  const { fields } = readThrift(bytes);
  // The first element is the root of the schema, which has no type.
  const columns = fields.structs(2).slice(1).map(readColumn);
  const codecs = new Set<number>();
  const rowGroups = fields.structs(4).map((group) => readRowGroup(group, codecs));
  if (rowGroups.some((group) => group.chunks.length !== columns.length)) {
    fields.fail('the number of chunks of a row group differs from the number of columns');
  }
  const keyValues = new Map(fields.structs(5).map((entry) => [entry.text(1), entry.text(2)]));
  return { columns, rows: fields.size(3), codec: onlyCodec(fields, codecs), rowGroups, keyValues };
}

function onlyCodec(fields: ThriftFields, codecs: ReadonlySet<number>): Codec {
  const [first] = codecs;
  if (codecs.size > 1) fields.fail('the column chunks use different codecs');
  if (first === codecNumber.zstd) return 'zstd';
  // A file without row groups names no codec, and needs none.
  if (first === codecNumber.lz4 || first === undefined) return 'lz4';
  return fields.fail(`codec ${first}, expected LZ4_RAW or ZSTD`);
}

function readColumn(element: ThriftFields): FileColumn {
  const name = element.text(4);
  return { name, content: name === cursorColumn ? 'cursor' : contentOf(element, name) };
}

function contentOf(element: ThriftFields, name: string): ColumnContent {
  const type = element.size(1);
  const converted = element.size(6, -1);
  const found = fieldTypes.filter((name) => physicalType[typeFacts[name].parquet.physical] === type);
  const annotated = found.find((name) => {
    const { annotation } = typeFacts[name].parquet;
    return annotation !== undefined && annotations[annotation].converted === converted;
  });
  return (
    annotated ??
    found[0] ??
    element.fail(`column "${name}" has the physical type ${type}, which Logstrata does not write`)
  );
}

/** Parquet's `ConvertedType` and `LogicalType` of the annotations that we write. */
const annotations = {
  utf8: { converted: convertedType.utf8, logical: { 1: {} } },
  timestampMillis: {
    converted: convertedType.timestampMillis,
    logical: { 8: { 1: true, 2: { 1: {} } } },
  },
} as const satisfies Record<string, { converted: number; logical: ThriftStruct }>;

function readRowGroup(group: ThriftFields, codecs: Set<number>): FooterRowGroup {
  const rows = group.size(3);
  const chunks = group.structs(1).map((chunk) => readColumnMetaData(chunk.struct(3), codecs));
  if (chunks.some((chunk) => chunk.rows !== rows))
    group.fail('the number of rows of a column chunk differs from that of its row group');
  return { rows, chunks };
}

function readColumnMetaData(fields: ThriftFields, codecs: Set<number>): ChunkPlace {
  codecs.add(fields.size(4));
  const bytes = fields.size(7);
  const dataPage = fields.size(9);
  const offset = fields.size(11, dataPage);
  const dictionaryPageBytes = dataPage - offset;
  if (dictionaryPageBytes < 0 || dictionaryPageBytes >= bytes)
    fields.fail('the pages of a column chunk are out of place');
  const statistics = fields.struct(12);
  const max = statistics.binary(5);
  const min = statistics.binary(6);
  return {
    offset,
    bytes,
    dictionaryPageBytes,
    uncompressedBytes: fields.size(6),
    // `writeFooter` lists the encoding of the data page before that of the levels, which is the last.
    dataEncoding: fields.integers(2).at(-2) ?? -1,
    rows: fields.size(5),
    nullCount: statistics.size(3),
    bounds: min === null || max === null ? null : { min, max },
  };
}

/** In the form that Parquet readers parse: a name, `version`, and a build. The build changes with the format of the files. */
const createdBy = 'logstrata version 1.0.0 (build segment-format-2)';

/** Version 2 announces version 2 data pages and the newer encodings. */
const fileVersion = 2;

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
  const { physical, annotation } = contentFacts(content).parquet;
  const annotated = annotation === undefined ? undefined : annotations[annotation];
  return {
    1: i32(physicalType[physical]),
    3: i32(content === 'cursor' ? repetition.required : repetition.optional),
    4: name,
    6: annotated === undefined ? undefined : i32(annotated.converted),
    9: i32(index + 1),
    10: annotated?.logical,
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
    1: i32(physicalType[contentFacts(content).parquet.physical]),
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
