import type { ThriftFields } from '../parquet/thrift-reader.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import {
  type ForeignRowGroup,
  type DecodedSpans,
  type ForeignChunk,
  type ForeignRead,
  withErrorsNamed,
} from './foreign-file.js';
import { FactsCache, readForeignBytes } from './foreign-source.js';
import { readFooter, withParquetFooter } from './read-parquet-file.js';
import { schemaNodes, type SchemaNode, type LeafNode } from './schema-node.js';
import { crc32 } from '../kernels/crc32.js';
import { FormatError } from '../parquet/format.js';
import { LogstrataError } from '../core/errors.js';
import { filePieceBytes } from '../core/limits.js';
import { SpanColumns } from './span-columns.js';
import { openDecompressedPages } from './page-codec.js';
import { PageReader } from './page-reader.js';
import { LeafCursor, RowReader } from './row-reader.js';
import { setJson, valueSetter } from './leaf-format.js';

/** Schema tree and column chunks of a footer, including the chunks inside nested columns. */
export interface NestedFooter {
  readonly columns: readonly SchemaNode[];
  /** Their `chunks` have one entry per leaf of the schema. */
  readonly rowGroups: readonly ForeignRowGroup[];
}

const footers = new FactsCache((place) =>
  withParquetFooter(place, async (footer, footerAt) => readNestedFooter(footer, footerAt)),
);

/** Returns the footer of a Parquet file, cached per thread. Throws as `readParquetFile` does. */
async function nestedFooterOf(place: ForeignPlace): Promise<NestedFooter> {
  return await footers.of(place);
}

function readNestedFooter(footer: Uint8Array, footerAt: number): NestedFooter {
  const elements: ThriftFields[] = [];
  const { rowGroups } = readFooter(footer, footerAt, {
    element: (element) => elements.push(element),
    // Present each leaf as a nested column of its own (`flat: null`): of these only the position is read.
    columns: ({ leaves }) =>
      Array.from({ length: leaves }, (_, leaf) => ({
        name: `leaf ${leaf}`,
        isNullable: true,
        flat: null,
        stored: '',
        firstLeaf: leaf,
        leaves: 1,
      })),
  });
  return { columns: schemaNodes(elements), rowGroups: rowGroups.rowGroups };
}

/**
 * Decodes a column of a row group of a Parquet file, of any type, encoding and codec, value by value. Returns all spans of
 * the row group that fit into memory. Blocks while it reads: for worker threads. Throws `DamageError` with the path, offset,
 * row group and column, `limit` where too much memory is needed, `unsupported`, `not_found` and `io`.
 */
export async function decodeParquetCompletely(read: ForeignRead): Promise<DecodedSpans> {
  return await withErrorsNamed(read, async ({ chunk }) => {
    const decoded = await decodeSpans(read);
    return { ...decoded, pages: null, bytesRead: chunk.bytes, checksum: checksumOf(read, chunk) };
  });
}

async function decodeSpans(read: ForeignRead): Promise<Pick<DecodedSpans, 'spans' | 'replaced'>> {
  const { column, columnIndex, rowGroup, chunk } = read;
  if (column.reason === 'encrypted')
    throw new LogstrataError('unsupported', 'is encrypted, which is not supported');
  const footer = await nestedFooterOf(read);
  const node = footer.columns[columnIndex];
  const chunks = footer.rowGroups[rowGroup]?.chunks;
  if (node === undefined || chunks === undefined || footer.rowGroups[rowGroup]!.rows !== read.rowGroupRows)
    throw new FormatError('the file has changed: its schema or its rows are different', chunk.offset);
  const cursors: LeafCursor[] = [];
  for (const [i, type] of leafTypes(node).entries()) {
    const leafChunk = chunks[node.firstLeaf + i]!;
    const pages = new PageReader(read, leafChunk, type, await openDecompressedPages(leafChunk.codec));
    cursors.push(new LeafCursor(type, pages));
  }
  const rows = new RowReader(node, cursors);
  const columns = new SpanColumns(read);
  const isJson = node.kind !== 'leaf' || column.values.kind === 'json';
  const setValue = isJson ? undefined : valueSetter(column, cursors[0]!.format.text);
  let replaced = 0;
  while (!columns.isComplete) {
    const { builder } = columns;
    if (builder === null) rows.skipRow();
    else if (setValue === undefined) setJson(builder, rows.json());
    else {
      const value = rows.value();
      if (value !== null) replaced += setValue(builder, value);
    }
    columns.endRow();
  }
  return { spans: columns.spans, replaced };
}

function leafTypes(node: SchemaNode): LeafNode['type'][] {
  switch (node.kind) {
    case 'leaf':
      return [node.type];
    case 'struct':
      return node.fields.flatMap((field) => leafTypes(field.node));
    case 'list':
      return leafTypes(node.item);
    case 'map':
      return [...leafTypes(node.key), ...leafTypes(node.value)];
  }
}

/** The crc32 of a column chunk. Its pages have just been read, so it comes from the system's cache. */
function checksumOf(place: ForeignPlace, { offset, bytes }: ForeignChunk): number {
  let checksum = 0;
  for (let at = 0; at < bytes; at += filePieceBytes) {
    const piece = new Uint8Array(Math.min(filePieceBytes, bytes - at));
    if (readForeignBytes(place, offset + at, piece) < piece.length)
      throw new FormatError('the file ends here: it is shorter than before', offset + at);
    checksum = crc32(piece, checksum);
  }
  return checksum;
}
