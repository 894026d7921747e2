import type { ColumnBuilder } from '../../columns/column-builder.js';
import { crc32 } from '../../kernels/crc32.js';
import { FormatError } from '../../parquet/format.js';
import { openFiles } from '../../store/disk/open-files.js';
import { assert } from '../../terms/assert.js';
import { DamageError, LogstrataError } from '../../terms/errors.js';
import { int64Max, int64Min, verifyPieceBytes } from '../../terms/limits.js';
import type { DecodedSpans, ForeignChunk, ForeignColumn, ForeignRead } from '../foreign-file.js';
import { ticksToMs } from '../parquet/ticks.js';
import { SpanColumns } from '../span-columns.js';
import { openPageDecompressor } from './decompress.js';
import type { LeafFormat, LeafValue } from './leaf-format.js';
import { nestedFooterOf } from './nested-footer.js';
import { PageReader } from './page-reader.js';
import { LeafCursor, RowReader } from './row-reader.js';
import type { LeafNode, SchemaNode } from './schema-node.js';

/**
 * Decodes a column of a row group of a Parquet file, of any type, encoding and codec, value by value. Gives all spans of the row group, but
 * for those that there is no memory for. Blocks while it reads: it is for a thread. Throws `DamageError` with the path, offset, row group
 * and column, `limit` for what takes too much memory, `unsupported`, `not_found` and `io`.
 */
export async function decodeParquetCompletely(read: ForeignRead): Promise<DecodedSpans> {
  const { path, column, rowGroup, chunk } = read;
  try {
    const decoded = await decodeSpans(read);
    return { ...decoded, pages: null, bytesRead: chunk.bytes, checksum: checksumOf(path, chunk) };
  } catch (error) {
    const place = `${path}: column "${column.name}" of row group ${rowGroup}`;
    if (error instanceof FormatError) {
      // What the rows of several pages contradict each other in has no place of its own.
      const offset = Math.max(error.offset, chunk.offset);
      const message = `${place}, at byte ${offset}: ${error.message}`;
      throw new DamageError(message, { path, offset, rowGroup, column: column.name, cause: error });
    }
    if (!(error instanceof LogstrataError) || error.path !== undefined) throw error;
    throw new LogstrataError(error.code, `${place}: ${error.message}`, { path, cause: error });
  }
}

async function decodeSpans(read: ForeignRead): Promise<Pick<DecodedSpans, 'spans' | 'replaced'>> {
  const { path, column, columnIndex, rowGroup, chunk } = read;
  const footer = await nestedFooterOf(path);
  const node = footer.columns[columnIndex];
  const chunks = footer.rowGroups[rowGroup]?.chunks;
  if (node === undefined || chunks === undefined || footer.rowGroups[rowGroup]!.rows !== read.rowGroupRows)
    throw new FormatError('the file has changed: it has another schema, or other rows', chunk.offset);
  const cursors: LeafCursor[] = [];
  for (const [i, type] of leafTypes(node).entries()) {
    const leafChunk = chunks[node.firstLeaf + i]!;
    const pages = new PageReader(path, leafChunk, type, await openPageDecompressor(leafChunk.codec));
    cursors.push(new LeafCursor(type, pages));
  }
  const rows = new RowReader(node, cursors);
  const columns = new SpanColumns(read);
  const isJson = node.kind !== 'leaf' || column.values.kind === 'json';
  const setValue = isJson ? undefined : setterOf(column, cursors[0]!.format);
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

function setJson(builder: ColumnBuilder, json: string | null): void {
  assert(builder.kind === 'string', 'JSON is text');
  if (json !== null) builder.setString(json);
}

/** How a value of a column that is not nested is set. Returns the sequences in it that were no UTF-8. */
function setterOf(
  column: ForeignColumn,
  format: LeafFormat,
): (builder: ColumnBuilder, value: LeafValue) => number {
  const { values } = column;
  return (builder, value) => {
    switch (builder.kind) {
      case 'string':
        if (values.kind === 'bytes' && value instanceof Uint8Array)
          return builder.setBytes(value, 0, value.length);
        builder.setString(format.text(value));
        return 0;
      case 'float':
        builder.setNumber(typeof value === 'number' ? value : Number(format.text(value)));
        return 0;
      case 'int': {
        const stored = BigInt(value as boolean | bigint);
        const integer = values.kind === 'ticks' ? ticksToMs(stored, values) : stored;
        if (integer < int64Min || integer > int64Max)
          throw new FormatError(`the integer ${integer}, which the file says is not there`, 0);
        builder.setBigInt(integer);
        return 0;
      }
    }
  };
}

/** The crc32 of a column chunk, which its pages were read from a moment ago. */
function checksumOf(path: string, { offset, bytes }: ForeignChunk): number {
  let checksum = 0;
  for (let at = 0; at < bytes; at += verifyPieceBytes) {
    const piece = new Uint8Array(Math.min(verifyPieceBytes, bytes - at));
    if (openFiles.read(path, offset + at, piece) < piece.length)
      throw new FormatError('the file ends here, which was longer', offset + at);
    checksum = crc32(piece, checksum);
  }
  return checksum;
}
