import { withKeptScratch } from '../../memory/scratch.js';
import type { Arena } from '../../memory/arena.js';
import { FormatError } from '../../parquet/format.js';
import type { ForeignRead, RowSpan } from '../foreign-file.js';
import type { ChunkBytes } from './chunk-bytes.js';
import { pagesOfTable, walkPages, type SpanPages } from './chunk-pages.js';
import { readOffsetIndex } from './offset-index.js';

/** The pages of the wanted span; and the crc32 of the whole chunk, null where it was not read or not asked for. */
export interface FoundPages {
  readonly found: SpanPages;
  readonly checksum: number | null;
}

/** Finds the pages of a reading. Where their positions are unknown, reads the whole chunk at once. Throws as `walkPages` does. */
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
 * Finds the pages of a span by the file's `OffsetIndex`. Null where there is none or it may not be used, where it would save
 * nothing (a single span), or where it does not agree with the pages.
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

/** Bytes that kernels need besides the page, per row: a value or code, and its end offset. */
const callBytesPerRow = 16;

/**
 * Calls `use` with an allocator of the buffer that each page is decompressed to. The buffer is in kernel memory where that
 * has room: kernels then need no copy of the page, and no memory is allocated from the system for each reading.
 * `besideBytes` is what kernel calls need beyond decoding.
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
