import { closing } from '../../core/waiting.js';
import type { Column } from '../../columns/column.js';
import { DamageError, LogstrataError } from '../../core/errors.js';
import { crc32 } from '../../kernels/crc32.js';
import { decodeChunk } from '../../parquet/chunk-decoder.js';
import { heapSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { type Codec, type Decompress, openDecompressor } from '../../parquet/compression.js';
import { cursorColumn, type ColumnContent, type Footer, readFooter } from '../../parquet/footer.js';
import { FormatError, magic, tailBytes } from '../../parquet/format.js';
import type { FieldType, Schema } from '../../core/schema.js';
import { convertColumn, type Conversion, copyColumn } from '../../columns/convert-column.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import { openSegment } from '../disk/real-directory.js';
import { storedSchema, type SegmentEntry } from '../manifest/manifest.js';
import { isUnsupported, writtenByAnother } from '../disk/checked-json.js';
import { filterParts, isPossible } from './segment-filters.js';
import { readMetadata, type SegmentMetadata } from './segment-metadata.js';

/** A segment's footer, verified against the manifest. */
export interface SegmentFooter {
  readonly footer: Footer;
  readonly metadata: SegmentMetadata;
  readonly decompress: Decompress;
}

/** Opens a segment's file, calls `use`, and closes it. */
export function withFile<T>(
  directory: Directory,
  path: string,
  use: (file: ReadableFile) => Promise<T>,
): Promise<T> {
  return closing(openSegment(directory, path), use);
}

/** Reads `length` bytes at `position`. Throws `DamageError` if the file ends before. */
export async function readBytes(file: ReadableFile, position: number, length: number): Promise<Uint8Array> {
  const bytes = await file.read(position, length);
  if (bytes.length === length) return bytes;
  throw cutOff(file.path, position + bytes.length, position + length);
}

/** Fills `target` with the bytes at `position`. Throws `DamageError` if the file ends before. */
export async function readBytesInto(file: ReadableFile, position: number, target: Uint8Array): Promise<void> {
  const done = await file.readInto(position, target);
  if (done < target.length) throw cutOff(file.path, position + done, position + target.length);
}

/**
 * Reads a segment's footer and verifies it against the manifest. Throws `DamageError`, in which case no row of the segment can be read
 * without recovery; `unsupported` if a newer program wrote it.
 */
export async function readSegmentFooter(
  file: ReadableFile,
  entry: SegmentEntry,
  schema: Schema,
): Promise<SegmentFooter> {
  const { path } = file;
  const bytes = await readBytes(file, entry.footerOffset, entry.footerBytes);
  if (crc32(bytes) !== entry.footerChecksum) {
    throw new DamageError('the footer does not match its checksum', { path, offset: entry.footerOffset });
  }
  try {
    const footer = readFooter(bytes.subarray(0, bytes.length - tailBytes));
    const metadata = readMetadata(footer.keyValues);
    checkFooter(footer, metadata, entry, schema);
    return { footer, metadata, decompress: await openDecompressor(footer.codec) };
  } catch (error) {
    const isFormat = error instanceof FormatError || error instanceof LogstrataError;
    if (!isFormat) throw error;
    if (isUnsupported(error)) throw writtenByAnother(path, path, error);
    throw new DamageError(`the footer is malformed: ${error.message}`, {
      path,
      offset: entry.footerOffset + (error.offset ?? 0),
      cause: error,
    });
  }
}

/** Verifies everything that readers rely on. Throws `DamageError` without a place. */
function checkFooter(footer: Footer, metadata: SegmentMetadata, entry: SegmentEntry, fields: Schema): void {
  const schema = storedSchema(entry, fields);
  const names = [cursorColumn, ...schema.fields.map((field) => field.name)];
  const contents: ColumnContent[] = ['cursor', ...schema.fields.map((field) => field.type)];
  const sameColumns =
    footer.columns.length === names.length &&
    footer.columns.every((column, i) => column.name === names[i] && column.content === contents[i]);
  if (!sameColumns) throw new DamageError('its columns differ from the schema in the manifest', {});
  const rows = footer.rowGroups.map((group) => group.rows);
  if (rows.length !== entry.rowGroupRows.length || rows.some((count, i) => count !== entry.rowGroupRows[i])) {
    throw new DamageError('its row groups differ from those in the manifest', {});
  }
  const { checksums } = metadata;
  if (checksums.length !== rows.length || checksums.some((group) => group.length !== names.length)) {
    throw new DamageError('checksums of column chunks are missing', {});
  }
  const isOutside = (offset: number, bytes: number): boolean => offset + bytes > entry.footerOffset;
  for (const group of footer.rowGroups) {
    if (group.chunks.some((chunk) => isOutside(chunk.offset, chunk.bytes))) {
      throw new DamageError('a column chunk overlaps the footer', {});
    }
  }
  const types = schema.fields.map(({ type }) => type);
  if (
    !isPossible(metadata, rows.length, types) ||
    filterParts(metadata, rows.length).some(({ offset, bytes }) => isOutside(offset, bytes))
  ) {
    throw new DamageError('a filter has an impossible size or place', {});
  }
}

/** A column chunk in its file, with everything needed to decode it. Plain data, so that it can be sent to a thread. */
export interface StoredChunk {
  /** Path of the file, for messages. */
  readonly path: string;
  readonly rowGroup: number;
  /** Name of the column. */
  readonly name: string;
  readonly content: ColumnContent;
  readonly rows: number;
  readonly codec: Codec;
  readonly offset: number;
  readonly bytes: number;
  /** crc32 of its bytes. */
  readonly checksum: number;
}

/** A column chunk as described by the footer. Column 0 of the file is `_cursor`. */
export function storedChunk(
  { footer, metadata }: SegmentFooter,
  { rowGroup, column }: { readonly rowGroup: number; readonly column: number },
  path: string,
): StoredChunk {
  const { name, content } = footer.columns[column]!;
  const { offset, bytes, rows } = footer.rowGroups[rowGroup]!.chunks[column]!;
  const checksum = metadata.checksums[rowGroup]![column]!;
  return { path, rowGroup, name, content, rows, codec: footer.codec, offset, bytes, checksum };
}

/** Verifies and decodes the bytes of a column chunk. `space` allocates the column. Throws `DamageError` with row group and column. */
export function decodeStoredChunk(
  bytes: Uint8Array,
  chunk: StoredChunk,
  decompress: Decompress,
  space: ColumnSpace = heapSpace,
): Column {
  const { path, rowGroup, name, content, rows, offset, checksum } = chunk;
  const place = { path, offset, rowGroup, column: name };
  if (crc32(bytes) !== checksum) {
    throw new DamageError(`column "${name}" of row group ${rowGroup} does not match its checksum`, place);
  }
  try {
    return decodeChunk(bytes, content, rows, decompress, space);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new DamageError(`column "${name}" of row group ${rowGroup} is malformed: ${error.message}`, {
      ...place,
      offset: offset + error.offset,
      cause: error,
    });
  }
}

/** Like `decodeStoredChunk`, with a conversion to the current type of the field. */
export function decodeConverted(
  bytes: Uint8Array,
  chunk: StoredChunk,
  { conversion, type }: { readonly conversion: Conversion; readonly type: FieldType },
  decompress: Decompress,
  space: ColumnSpace,
): Column {
  if (conversion === 'none') return decodeStoredChunk(bytes, chunk, decompress, space);
  const converted = convertColumn(decodeStoredChunk(bytes, chunk, decompress), conversion, type);
  return copyColumn(converted, space.kept);
}

/** The error for a file that ends at `end`, before `expectedEnd`. */
export function cutOff(path: string, end: number, expectedEnd: number): DamageError {
  return new DamageError(`the file ends after ${end} bytes, expected ${expectedEnd}`, { path, offset: end });
}

/** Whether the bytes are Parquet's magic number. Our own readers do not need it, but other tools do. */
export function hasMagic(bytes: Uint8Array): boolean {
  return bytes.length === magic.length && bytes.every((byte, i) => byte === magic[i]);
}
