import { cursorColumn } from './footer.js';
import type { ChunkPlace, ColumnContent, FileColumn, Footer, FooterRowGroup } from './footer.js';
import { codecNumber, convertedType, physicalType } from './format.js';
import { readThrift, type ThriftFields } from './thrift-reader.js';
import type { Codec } from './compression.js';

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
  switch (type) {
    case physicalType.int64:
      return element.size(6, -1) === convertedType.timestampMillis ? 'time' : 'int';
    case physicalType.double:
      return 'float';
    case physicalType.byteArray:
      return 'string';
    case physicalType.boolean:
      return 'bool';
    default:
      return element.fail(`column "${name}" has the physical type ${type}, which Logstrata does not write`);
  }
}

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
