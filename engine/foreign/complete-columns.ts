import { heap } from '../core/arena.js';
import { LogstrataError } from '../core/errors.js';
import { FormatError } from '../parquet/format.js';
import type { Decompress } from '../parquet/compression.js';
import { ChunkBytes } from './chunk-bytes.js';
import { eachPage, tableAsTold, tabledDictionary, tabledPages, type Page } from './chunk-pages.js';
import { type DecodedSpans, type ForeignRead, type LeafChunk, withErrorsNamed } from './foreign-file.js';
import { openPageDecompressor } from './page-codec.js';
import { LeafCursor, RowReader } from './row-reader.js';
import { leafTypes } from './parquet-schema.js';
import { buildSpans } from './span-columns.js';

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
 * into memory. Blocks while it reads: for worker threads. Throws `DamageError` with the path, offset, row group and column,
 * `limit` where too much memory is needed, `unsupported`, `not_found` and `io`.
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
      const indexed = decodeIndexed(read, leaves);
      if (indexed !== null) return { ...indexed, pages: null, bytesRead: bytesRead(), checksum: null };
      const checksum = bytes.readWhole();
      const pages = leaves.map((leaf) => eachPage(leaf.bytes));
      const rows = new RowReader(read.column.node!, cursorsOf(read, leaves, pages));
      const decoded = buildSpans(read, rows, true);
      return { ...decoded, pages: null, bytesRead: bytesRead(), checksum };
    } finally {
      bytes.close();
    }
  });
}

/** Decodes the wanted span from the pages that the file's indexes give. Null where these may not be used, save nothing, or contradict the pages. */
function decodeIndexed(read: ForeignRead, leaves: readonly Leaf[]): Decoded | null {
  const { takesOffsetIndex, spans, wanted } = read;
  if (takesOffsetIndex !== true || spans.length < 2) return null;
  const span = spans[wanted]!;
  try {
    const firstRows: number[] = [];
    const pages: Page[][] = [];
    for (const { bytes, chunk } of leaves) {
      const table = tableAsTold(bytes, chunk, read.rowGroupRows);
      if (table === null) return null;
      const own = tabledPages(bytes, span, table);
      const dictionary = tabledDictionary(bytes, table);
      firstRows.push(own[0]!.firstRow);
      pages.push(dictionary === null ? own : [dictionary, ...own]);
    }
    const cursors = cursorsOf(read, leaves, pages);
    for (const [i, cursor] of cursors.entries()) cursor.skipRows(span.from - firstRows[i]!);
    return buildSpans(read, new RowReader(read.column.node!, cursors), false);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

function cursorsOf(
  { column }: ForeignRead,
  leaves: readonly Leaf[],
  pages: readonly Iterable<Page>[],
): LeafCursor[] {
  return leafTypes(column.node!).map((type, i) => {
    const leaf = leaves[i]!;
    const { bytes, decompress } = leaf;
    const { definitionMax, repetitionMax } = type;
    const reading = { bytes, codec: leaf.chunk.codec, decompress, definitionMax, repetitionMax, room: heap };
    return new LeafCursor(type, pages[i]!, reading);
  });
}
