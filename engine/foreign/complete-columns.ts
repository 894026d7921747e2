import type { Arena } from '../core/arena.js';
import { LogstrataError } from '../core/errors.js';
import { foreignAtOnceBytesMax } from '../core/limits.js';
import { FormatError } from '../parquet/format.js';
import type { Decompress } from '../parquet/compression.js';
import { ChunkBytes } from './chunk-bytes.js';
import { eachPage, tableAsTold, tabledDictionary, tabledPages, type Page } from './chunk-pages.js';
import {
  type DecodedSpans,
  type ForeignRead,
  type LeafChunk,
  wantedSpan,
  withErrorsNamed,
} from './foreign-file.js';
import { openPageDecompressor } from './page-codec.js';
import { LeafCursor, RowReader } from './row-reader.js';
import { leafTypes } from './parquet-schema.js';
import { buildRows, buildSpans } from './span-columns.js';

/** A leaf of the column, with what its pages are read with. */
interface Leaf {
  readonly chunk: LeafChunk;
  readonly bytes: ChunkBytes;
  readonly decompress: Decompress;
}

type Decoded = Pick<DecodedSpans, 'spans' | 'replaced'>;

/**
 * Decodes a column of a row group of a Parquet file, of any type, encoding and codec, value by value. Where the file's
 * `OffsetIndex` may be used, reads the pages of the wanted span; else the whole row group, and returns all of its spans that fit
 * into memory. Where only some rows are wanted, only their values are decoded. Blocks while it reads: for worker threads. Throws
 * `DamageError` with the path, offset, row group and column, `limit` where too much memory is needed, `unsupported`, `not_found`
 * and `io`.
 *
 * The package hyparquet would not do. It does not look at the checksums of pages (datapage_v1-corrupt-checksum.parquet of the
 * Parquet project), can't read datapage_v2_empty_datapage.snappy.parquet and nation.dict-malformed.parquet, allocates what a run
 * claims, and gives structures as objects, which reorder names that are numbers.
 */
export async function decodeParquetCompletely(read: ForeignRead): Promise<DecodedSpans> {
  return await withErrorsNamed(read, async ({ column, chunk }) => {
    if (column.reason === 'encrypted')
      throw new LogstrataError('unsupported', 'is encrypted, which is not supported');
    const bytes = new ChunkBytes(read, chunk);
    try {
      const leaves: Leaf[] = [];
      for (const leaf of chunk.leaves ?? [chunk])
        leaves.push({
          chunk: leaf,
          bytes: new ChunkBytes(read, leaf, bytes),
          decompress: await openPageDecompressor(leaf.codec),
        });
      const bytesRead = (): number =>
        leaves.reduce((sum, leaf) => sum + leaf.bytes.bytesRead, bytes.bytesRead);
      const { from, to } = wantedSpan(read);
      // With all rows, an index saves nothing.
      const usesIndex = to - from < read.rowGroupRows;
      const early = usesIndex && read.takesOffsetIndex === true ? decodeIndexed(read, leaves) : null;
      if (early !== null) return { ...early, pages: null, bytesRead: bytesRead(), checksum: null };
      const checksum = bytes.readWhole();
      const late = usesIndex && read.rows !== undefined ? decodeIndexed(read, leaves) : null;
      const decoded = late ?? decodeWalking(read, leaves);
      return { ...decoded, pages: null, bytesRead: bytesRead(), checksum };
    } finally {
      leaveRooms();
      bytes.close();
    }
  });
}

/** Decodes from the pages of the whole chunk, whose headers tell where they lie. */
function decodeWalking(read: ForeignRead, leaves: readonly Leaf[]): Decoded {
  const { rows, column } = read;
  const pages = leaves.map(({ bytes }) => ({ pages: eachPage(bytes), skipped: rows?.[0] ?? 0 }));
  const reader = new RowReader(column.node!, cursorsOf(read, leaves, pages));
  return rows === undefined ? buildSpans(read, reader) : buildRows(read, reader);
}

/** Decodes the wanted rows from the pages that the file's indexes give. Null where there are none, or where they contradict the pages. */
function decodeIndexed(read: ForeignRead, leaves: readonly Leaf[]): Decoded | null {
  const span = wantedSpan(read);
  try {
    const pages: LeafPages[] = [];
    for (const { bytes, chunk } of leaves) {
      const table = tableAsTold(bytes, chunk, read.rowGroupRows);
      if (table === null) return null;
      const own = tabledPages(bytes, span, table);
      const dictionary = tabledDictionary(bytes, table);
      pages.push({
        pages: dictionary === null ? own : [dictionary, ...own],
        skipped: span.from - own[0]!.firstRow,
      });
    }
    return buildRows(read, new RowReader(read.column.node!, cursorsOf(read, leaves, pages)));
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

/** Pages of a leaf, and how many of their first rows are not wanted. */
interface LeafPages {
  readonly pages: Iterable<Page>;
  readonly skipped: number;
}

/**
 * Buffers for pages, by leaf: one page of a leaf is needed at a time. They are kept, because the system takes longer to provide memory than a
 * page takes to decompress.
 */
const rooms: Uint8Array[] = [];

function roomOf(leaf: number): Arena {
  return (sizeBytes) => {
    let room = rooms[leaf];
    if (room === undefined || room.length < sizeBytes) room = rooms[leaf] = new Uint8Array(sizeBytes);
    return room.subarray(0, sizeBytes);
  };
}

function leaveRooms(): void {
  if (rooms.reduce((sum, { length }) => sum + length, 0) > foreignAtOnceBytesMax) rooms.length = 0;
}

function cursorsOf(
  { column, rows }: ForeignRead,
  leaves: readonly Leaf[],
  pages: readonly LeafPages[],
): LeafCursor[] {
  return leafTypes(column.node!).map((type, i) => {
    const leaf = leaves[i]!;
    const { bytes, decompress } = leaf;
    const { definitionMax, repetitionMax } = type;
    const reading = {
      bytes,
      codec: leaf.chunk.codec,
      decompress,
      definitionMax,
      repetitionMax,
      room: roomOf(i),
    };
    return new LeafCursor(type, pages[i]!.pages, reading, pages[i]!.skipped, rows !== undefined);
  });
}
