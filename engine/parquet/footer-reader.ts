import { cursorColumn } from './footer.js';
import type { ChunkPlace, ColumnContent, FileColumn, Footer, FooterRowGroup } from './footer.js';
import { codecNumber, convertedType, physicalType } from './format.js';
import type { Bounds } from './statistics.js';
import { ThriftReader, type ThriftField } from './thrift-reader.js';
import { thriftType } from './thrift-writer.js';
import type { Codec } from './compression.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Reads the structure that `writeFooter` wrote. Throws `FormatError` for what is malformed or not ours. */
export function readFooter(bytes: Uint8Array): Footer {
  const reader = new ThriftReader(bytes);
  let columns: FileColumn[] = [];
  let rows = 0;
  let rowGroups: FooterRowGroup[] = [];
  const codecs = new Set<number>();
  const keyValues = new Map<string, string>();
  reader.readStruct((field) => {
    switch (field.id) {
      case 2:
        columns = readSchema(reader, field);
        break;
      case 3:
        rows = reader.size(field);
        break;
      case 4:
        rowGroups = readList(reader, field, () => readRowGroup(reader, codecs));
        break;
      case 5:
        readList(reader, field, () => readKeyValue(reader, keyValues));
        break;
      default:
        reader.skip(field);
    }
  });
  if (rowGroups.some((group) => group.chunks.length !== columns.length)) {
    reader.fail('a row group has more or fewer chunks than the file has columns');
  }
  return { columns, rows, codec: onlyCodec(reader, codecs), rowGroups, keyValues };
}

function onlyCodec(reader: ThriftReader, codecs: ReadonlySet<number>): Codec {
  const [first] = codecs;
  if (codecs.size > 1) reader.fail('the column chunks differ in their codec');
  if (first === codecNumber.zstd) return 'zstd';
  // A file without row groups names no codec, and has nothing to decompress.
  if (first === codecNumber.lz4 || first === undefined) return 'lz4';
  return reader.fail(`codec ${first}, expected LZ4_RAW or ZSTD`);
}

function readList<T>(reader: ThriftReader, field: ThriftField, readElement: () => T): T[] {
  const length = reader.list(field, thriftType.struct);
  const elements: T[] = [];
  for (let i = 0; i < length; i++) elements.push(readElement());
  return elements;
}

function readSchema(reader: ThriftReader, list: ThriftField): FileColumn[] {
  const elements = readList(reader, list, () => {
    let type = -1;
    let converted = -1;
    let name = '';
    reader.readStruct((field) => {
      if (field.id === 1) type = reader.size(field);
      else if (field.id === 4) name = readText(reader, field);
      else if (field.id === 6) converted = reader.size(field);
      else reader.skip(field);
    });
    return { type, converted, name };
  });
  // The first element is the root, which has no type.
  return elements.slice(1).map(({ type, converted, name }) => {
    return { name, content: contentOf(reader, name, type, converted) };
  });
}

function contentOf(reader: ThriftReader, name: string, type: number, converted: number): ColumnContent {
  if (name === cursorColumn) return 'cursor';
  switch (type) {
    case physicalType.int64:
      return converted === convertedType.timestampMillis ? 'time' : 'int';
    case physicalType.double:
      return 'float';
    case physicalType.byteArray:
      return 'string';
    case physicalType.boolean:
      return 'bool';
    default:
      return reader.fail(`column "${name}" has the physical type ${type}, which we do not write`);
  }
}

function readRowGroup(reader: ThriftReader, codecs: Set<number>): FooterRowGroup {
  let rows = 0;
  let chunks: ChunkPlace[] = [];
  reader.readStruct((field) => {
    if (field.id === 1) chunks = readList(reader, field, () => readChunk(reader, codecs));
    else if (field.id === 3) rows = reader.size(field);
    else reader.skip(field);
  });
  if (chunks.some((chunk) => chunk.rows !== rows))
    reader.fail('a column chunk has more or fewer rows than its row group');
  return { rows, chunks };
}

function readChunk(reader: ThriftReader, codecs: Set<number>): ChunkPlace {
  let place: ChunkPlace | null = null;
  reader.readStruct((field) => {
    if (field.id !== 3) {
      reader.skip(field);
      return;
    }
    reader.expect(field, thriftType.struct);
    place = readColumnMetaData(reader, codecs);
  });
  return place ?? reader.fail('a column chunk without its metadata');
}

function readColumnMetaData(reader: ThriftReader, codecs: Set<number>): ChunkPlace {
  let dataEncoding = 0;
  let rows = 0;
  let uncompressedBytes = 0;
  let bytes = 0;
  let dataPage = 0;
  let dictionaryPage: number | null = null;
  let statistics: { nullCount: number; bounds: Bounds | null } = { nullCount: 0, bounds: null };
  reader.readStruct((field) => {
    if (field.id === 2) dataEncoding = readDataEncoding(reader, field);
    else if (field.id === 4) codecs.add(reader.size(field));
    else if (field.id === 5) rows = reader.size(field);
    else if (field.id === 6) uncompressedBytes = reader.size(field);
    else if (field.id === 7) bytes = reader.size(field);
    else if (field.id === 9) dataPage = reader.size(field);
    else if (field.id === 11) dictionaryPage = reader.size(field);
    else if (field.id === 12) statistics = readStatistics(reader, field);
    else reader.skip(field);
  });
  const offset = dictionaryPage ?? dataPage;
  const dictionaryPageBytes = dataPage - offset;
  if (dictionaryPageBytes < 0 || dictionaryPageBytes >= bytes)
    reader.fail('the pages of a column chunk are out of place');
  return { offset, bytes, dictionaryPageBytes, uncompressedBytes, dataEncoding, rows, ...statistics };
}

/** Our writer lists the encoding of the data page next to last, before that of the levels. */
function readDataEncoding(reader: ThriftReader, field: ThriftField): number {
  const length = reader.list(field, thriftType.i32);
  let dataEncoding = -1;
  for (let i = 0; i < length; i++) {
    const number = reader.integerElement();
    if (i === length - 2) dataEncoding = number;
  }
  return dataEncoding;
}

function readStatistics(
  reader: ThriftReader,
  list: ThriftField,
): { nullCount: number; bounds: Bounds | null } {
  let nullCount = 0;
  let min: Uint8Array | null = null;
  let max: Uint8Array | null = null;
  reader.expect(list, thriftType.struct);
  reader.readStruct((field) => {
    if (field.id === 3) nullCount = reader.size(field);
    else if (field.id === 5) max = reader.binary(field);
    else if (field.id === 6) min = reader.binary(field);
    else reader.skip(field);
  });
  return { nullCount, bounds: min === null || max === null ? null : { min, max } };
}

function readKeyValue(reader: ThriftReader, keyValues: Map<string, string>): void {
  let key = '';
  let value = '';
  reader.readStruct((field) => {
    if (field.id === 1) key = readText(reader, field);
    else if (field.id === 2) value = readText(reader, field);
    else reader.skip(field);
  });
  keyValues.set(key, value);
}

function readText(reader: ThriftReader, field: ThriftField): string {
  const bytes = reader.binary(field);
  try {
    return decoder.decode(bytes);
  } catch {
    return reader.fail('a name that is not UTF-8');
  }
}
