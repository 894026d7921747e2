import { crc32 } from 'node:zlib';
import { isValid, type Column } from '../columns/column.js';
import { isLogstrataError } from '../errors.js';
import { openDecompressor, type Decompress } from '../parquet/compression.js';
import { decodeChunk } from '../parquet/chunk-decoder.js';
import { cursorColumn, type ChunkPlace, type FileColumn } from '../parquet/footer.js';
import { FormatError } from '../parquet/format.js';
import { placementField, type Schema } from '../schema.js';
import type { Directory, ReadableFile } from '../storage/directory.js';
import type { SegmentEntry } from '../storage/manifest.js';
import { withFile, type SegmentFooter } from '../storage/segment-file.js';
import { describesSegment, readHeader, rowGroupChecksum } from '../storage/segment-header.js';
import { walkSegment, type WalkedChunk } from './segment-walk.js';

/** What of a segment can be read without its footer. */
export interface RecoveredSegment {
  /** What the footer would say, but for bounds, gram filters and the chunks of `_cursor`. Nothing of the lost row groups. */
  readonly footer: SegmentFooter;
  /** Row groups that are not whole. */
  readonly lost: readonly number[];
}

/** A chunk that is not read: that of `_cursor`. */
const nowhere: ChunkPlace = {
  offset: 0,
  bytes: 0,
  dictionaryPageBytes: 0,
  uncompressedBytes: 0,
  dataEncoding: 0,
  rows: 0,
  nullCount: 0,
  bounds: null,
};

/**
 * Finds the row groups of a segment whose footer can't be read, by what the manifest or the segment's own header says of it. A row group
 * counts as whole only if each page of each column matches the checksum in its page header, has the rows that are said, and decodes, the
 * times are within the bounds, and where the segment's header is whole, all of it matches the checksum there. Without a header, a row
 * group of the same segment that was copied over another by mistake can be taken for it. Undefined when the file is not there, or no row
 * group of it is whole.
 */
export async function recoverSegment(
  directory: Directory,
  path: string,
  entry: SegmentEntry,
  schema: Schema,
): Promise<RecoveredSegment | undefined> {
  try {
    return await withFile(directory, path, (file) => recoverFile(file, entry, schema));
  } catch (error) {
    if (isLogstrataError(error) && error.code === 'not_found') return undefined;
    throw error;
  }
}

async function recoverFile(
  file: ReadableFile,
  entry: SegmentEntry,
  schema: Schema,
): Promise<RecoveredSegment | undefined> {
  const decompress = await openDecompressor(entry.codec);
  const header = await readHeader(file);
  const known = header !== null && describesSegment(header, entry) ? header : undefined;
  const walked = await walkSegment(file, entry, schema.fields.length, known?.rowGroupOffsets);
  const lost: number[] = [];
  const rowGroups: { rows: number; chunks: ChunkPlace[] }[] = [];
  const checksums: number[][] = [];
  for (const [group, rows] of entry.rowGroupRows.entries()) {
    const chunks = walked[group];
    let found = chunks === undefined ? null : await checkRowGroup(file, entry, schema, chunks, decompress);
    if (found !== null && known !== undefined && rowGroupChecksum(found) !== known.rowGroupChecksums[group])
      found = null;
    if (found === null) lost.push(group);
    rowGroups.push({ rows, chunks: found === null ? [] : [nowhere, ...placesOf(chunks!)] });
    checksums.push(found === null ? [] : [0, ...found]);
  }
  if (lost.length === rowGroups.length) return undefined;
  const columns: FileColumn[] = [
    { name: cursorColumn, content: 'cursor' },
    ...schema.fields.map(({ name, type }) => ({ name, content: type })),
  ];
  const { rows, runs, codec, schemaVersion } = entry;
  const footer = { columns, rows, codec, rowGroups, keyValues: new Map<string, string>() };
  const headerBytes = entry.headerBytes ?? 0;
  const metadata = { schema, schemaVersion, runs, checksums, gramFilters: [], headerBytes };
  return { footer: { footer, metadata, decompress }, lost };
}

function placesOf(chunks: readonly WalkedChunk[]): ChunkPlace[] {
  return chunks.map(({ isFirst: _, ...place }) => ({ ...place, bounds: null }));
}

/** The crc32 of each chunk of a row group; null unless all of them are whole. */
async function checkRowGroup(
  file: ReadableFile,
  entry: SegmentEntry,
  schema: Schema,
  chunks: readonly WalkedChunk[],
  decompress: Decompress,
): Promise<number[] | null> {
  const checksums: number[] = [];
  for (const [field, { offset, bytes, rows }] of chunks.entries()) {
    const stored = await file.read(offset, bytes);
    let column: Column;
    try {
      column = decodeChunk(stored, schema.fields[field]!.type, rows, decompress);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      return null;
    }
    if (field === placementField(schema) && !isWithin(column, entry)) return null;
    checksums.push(crc32(stored));
  }
  return checksums;
}

/** Whether all times are within the bounds of the segment. */
function isWithin(column: Column, { timeMinMs, timeMaxMs }: SegmentEntry): boolean {
  const plain = column.kind === 'dictionary' ? column.values : column;
  if (plain.kind !== 'int64') return false;
  for (let row = 0; row < plain.length; row++) {
    if (column.kind !== 'dictionary' && !isValid(column.validity, row)) continue;
    const timeMs = Number(plain.values[row]);
    if (timeMinMs === null || timeMaxMs === null || timeMs < timeMinMs || timeMs > timeMaxMs) return false;
  }
  return true;
}
