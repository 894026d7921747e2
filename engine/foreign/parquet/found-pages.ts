import { withKeptScratch } from '../../memory/scratch.js';
import type { Arena } from '../../memory/arena.js';
import { FormatError } from '../../parquet/format.js';
import type { ForeignRead, RowSpan } from '../foreign-file.js';
import type { ChunkBytes } from './chunk-bytes.js';
import { pagesOfTable, walkPages, type SpanPages } from './chunk-pages.js';
import { readOffsetIndex } from './offset-index.js';

/** The pages that hold the wanted span, and the crc32 of all of the chunk where it was read for that and is asked for. */
export interface FoundPages {
  readonly found: SpanPages;
  readonly checksum: number | null;
}

/** Finds the pages of a reading. Where it is not known where they lie, all of the chunk is read at once. Throws as `walkPages` does. */
export function findPages(bytes: ChunkBytes, read: ForeignRead, wantsChecksum: boolean): FoundPages {
  const span = read.spans[read.wanted]!;
  if (read.pages !== null) return { found: pagesOfTable(bytes, read, span, read.pages), checksum: null };
  const told = pagesAsTold(bytes, read, span);
  if (told !== null) return { found: told, checksum: null };
  const checksum = wantsChecksum ? bytes.readWhole() : null;
  if (!wantsChecksum) bytes.readAhead(read.chunk.offset, bytes.end);
  return { found: walkPages(bytes, read, span), checksum };
}

/**
 * The pages that hold a span as the file's own index says where they lie; null where there is none, it would save nothing, or the pages are
 * not what it says.
 */
function pagesAsTold(bytes: ChunkBytes, read: ForeignRead, span: RowSpan): SpanPages | null {
  const { chunk, spans, rowGroupRows, takesOffsetIndex } = read;
  const place = chunk.offsetIndex;
  if (takesOffsetIndex !== true || place === undefined || spans.length < 2) return null;
  const table = readOffsetIndex(bytes.bytesBeside(place.offset, place.bytes), chunk, rowGroupRows);
  if (table === null) return null;
  try {
    return pagesOfTable(bytes, read, span, table);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

/** What kernels need beside a page, for each of its rows: a value or code, and where it ends. */
const callBytesPerRow = 16;

/**
 * Has `use` work with memory that each page is decompressed to: where there is room, memory of the kernels, which then need no copy of it
 * and which is not asked of the machine again and again. Calls of kernels may need `besideBytes` more than decoding does.
 */
export function withPageRoom<T>(
  { pages, dictionary }: SpanPages,
  besideBytes: number,
  use: (room: Arena) => T,
): T {
  let bytes = dictionary?.header.uncompressedBytes ?? 0;
  let rows = dictionary?.header.entries ?? 0;
  for (const { header } of pages) {
    bytes = Math.max(bytes, header.uncompressedBytes);
    rows = Math.max(rows, header.rows);
  }
  return withKeptScratch(bytes, bytes + rows * callBytesPerRow + besideBytes, (kept) => {
    const room = kept ?? new Uint8Array(bytes);
    return use((length) => room.subarray(0, length));
  });
}
