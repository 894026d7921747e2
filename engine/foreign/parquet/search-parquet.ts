import type { BlockVerdict } from '../../kernels/block-search.js';
import { needlesBytes, type KernelNeedle } from '../../kernels/needle.js';
import { searchPlainStrings } from '../../kernels/plain-strings.js';
import type { Arena } from '../../memory/arena.js';
import type { Decompress } from '../../parquet/compression.js';
import { encoding, FormatError, physicalType } from '../../parquet/format.js';
import type { ForeignRead } from '../foreign-file.js';
import { openPageDecompressor } from '../page-codec.js';
import { withErrorsNamed } from '../reading-errors.js';
import { ChunkBytes } from './chunk-bytes.js';
import { hasCodes, type DataPage, type SpanPages } from './chunk-pages.js';
import { findPages, withPageRoom } from './found-pages.js';
import { readDataPage, readDictionaryPage, type PageReading, type StoredPage } from './stored-page.js';

/** For each span that was searched, whether it may hold a needle. */
export interface SearchedSpans {
  readonly spans: readonly { readonly span: number; readonly mayHold: boolean }[];
  readonly bytesRead: number;
}

/** Invalid UTF-8 becomes U+FFFD only on decoding, so a needle with U+FFFD can't be searched in stored bytes. */
const replacement = Buffer.from('\ufffd');

/**
 * Searches needles in the strings of pages as they are stored, without decoding them. A span without a hit holds no value
 * with a needle. Null where the encoding does not store the strings as such, so that they have to be decoded. Blocks, and
 * throws, as `decodeParquet` does.
 */
export async function searchParquet(
  read: ForeignRead,
  needles: readonly KernelNeedle[],
): Promise<SearchedSpans | null> {
  const { column, format } = read;
  if (format !== 'parquet' || column.way !== 'fast' || column.parquet?.type !== physicalType.byteArray)
    return null;
  if (needles.some(({ planes, length }) => Buffer.from(planes.subarray(0, length)).includes(replacement)))
    return null;
  return await withErrorsNamed(read, async ({ chunk }) => {
    const decompress = await openPageDecompressor(chunk.codec);
    const bytes = new ChunkBytes(read, chunk);
    try {
      const { found } = findPages(bytes, read, false);
      if (!areStoredPlain(found)) return null;
      return searchPages(read, found, needles, bytes, decompress);
    } finally {
      bytes.close();
    }
  });
}

/** Whether all strings are stored as such, in data pages or in the dictionary. */
function areStoredPlain({ pages, dictionary }: SpanPages): boolean {
  return pages.every(
    ({ header }) => header.encoding === encoding.plain || (hasCodes(header.encoding) && dictionary !== null),
  );
}

function searchPages(
  read: ForeignRead,
  found: SpanPages,
  needles: readonly KernelNeedle[],
  bytes: ChunkBytes,
  decompress: Decompress,
): SearchedSpans {
  const { chunk, column, spans, wanted } = read;
  const { pages, dictionary } = found;
  const mayHold = withPageRoom(found, needlesBytes(needles), (room: Arena) => {
    const reading: PageReading = { bytes, codec: chunk.codec, decompress, isNullable: column.nullable, room };
    const isCoded = pages.some(({ header }) => hasCodes(header.encoding));
    // A page of codes may hold a needle where some dictionary entry does. Only decoding tells which pages refer to that entry.
    const mayCoded =
      isCoded && dictionary !== null && holdsIn(readDictionaryPage(dictionary, reading), needles);
    return pages.map((page) =>
      hasCodes(page.header.encoding) ? mayCoded : holdsIn(readDataPage(page, reading), needles),
    );
  });
  const firstRow = pages[0]?.firstRow ?? spans[wanted]!.from;
  const endRow = pages.length === 0 ? firstRow : endOf(pages[pages.length - 1]!);
  const searched: SearchedSpans['spans'][number][] = [];
  for (const [span, { from, to }] of spans.entries()) {
    if (from < firstRow || to > endRow) continue;
    const isHit = pages.some((page, i) => mayHold[i]! && page.firstRow < to && endOf(page) > from);
    searched.push({ span, mayHold: isHit });
  }
  return { spans: searched, bytesRead: bytes.bytesRead };
}

function endOf({ firstRow, header }: DataPage): number {
  return firstRow + header.rows;
}

/** Whether some string of the page may hold a needle. Throws `FormatError` where the strings do not fill the page. */
function holdsIn({ values, present, at }: StoredPage, needles: readonly KernelNeedle[]): boolean {
  const verdict: BlockVerdict = present === 0 ? 'none' : searchPlainStrings(values, present, needles);
  if (verdict === 'malformed') throw new FormatError('the strings do not fill their page', at);
  return verdict === 'may';
}
