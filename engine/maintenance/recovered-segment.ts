import { crc32 } from 'node:zlib';
import { isLogstrataError } from '../terms/errors.js';
import { openDecompressor } from '../parquet/compression.js';
import { cursorColumn, type ChunkPlace, type FileColumn } from '../parquet/footer.js';
import { sameSchema, type Schema } from '../terms/schema.js';
import type { Directory, ReadableFile } from '../store/disk/directory.js';
import type { SegmentEntry } from '../store/manifest/manifest.js';
import { noFilters } from '../store/sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../store/sealed/segment-file.js';
import { describesSegment, readHeader, rowGroupChecksum } from '../store/sealed/segment-header.js';
import { walkSegment, type WalkedChunk } from './segment-walk.js';

/** What can be read of a segment without its footer. */
export interface RecoveredSegment {
  /** A reconstructed footer without bounds, gram filters and the chunks of `_cursor`. Lost row groups have no chunks. */
  readonly footer: SegmentFooter;
  /** Indexes of row groups that are damaged. */
  readonly lost: readonly number[];
}

/** A placeholder for the chunk of `_cursor`, which is not read. */
const unreadChunk: ChunkPlace = {
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
 * Finds the row groups of a segment whose footer cannot be read, by means of its header. A row group is undamaged if each page of each
 * column matches the checksum in its page header and has the expected number of rows, and if the row group matches its checksum in the
 * segment's header. Undefined if the file is missing, its header is damaged or belongs to another segment than `entry`, or no row group is
 * undamaged.
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
  const header = await readHeader(file);
  if (header === null || !describesSegment(header, entry) || !sameSchema(header.schema, schema))
    return undefined;
  const walked = await walkSegment(file, header);
  const lost: number[] = [];
  const rowGroups: { rows: number; chunks: ChunkPlace[] }[] = [];
  const checksums: number[][] = [];
  for (const [group, rows] of entry.rowGroupRows.entries()) {
    const chunks = walked[group] ?? [];
    const found = await checksumsOf(file, chunks);
    const isWhole = chunks.length > 0 && rowGroupChecksum(found) === header.rowGroupChecksums[group];
    if (!isWhole) lost.push(group);
    rowGroups.push({ rows, chunks: isWhole ? [unreadChunk, ...placesOf(chunks)] : [] });
    checksums.push(isWhole ? [0, ...found] : []);
  }
  if (lost.length === rowGroups.length) return undefined;
  const columns: FileColumn[] = [
    { name: cursorColumn, content: 'cursor' },
    ...schema.fields.map(({ name, type }) => ({ name, content: type })),
  ];
  const { rows, runs, codec, schemaVersion, headerBytes, summaryBytes } = entry;
  const footer = { columns, rows, codec, rowGroups, keyValues: new Map<string, string>() };
  const metadata = { schema, schemaVersion, runs, checksums, ...noFilters, headerBytes, summaryBytes };
  const decompress = await openDecompressor(codec);
  return { footer: { footer, metadata, decompress }, lost };
}

function placesOf(chunks: readonly WalkedChunk[]): ChunkPlace[] {
  return chunks.map((place) => ({ ...place, bounds: null }));
}

/** The crc32 of each chunk of a row group. */
async function checksumsOf(file: ReadableFile, chunks: readonly WalkedChunk[]): Promise<number[]> {
  const checksums: number[] = [];
  for (const { offset, bytes } of chunks) checksums.push(crc32(await file.read(offset, bytes)));
  return checksums;
}
