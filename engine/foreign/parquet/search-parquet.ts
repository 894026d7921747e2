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

/** What a search has shown of the wanted span, and of those that came with it. */
export interface SearchedSpans {
  readonly spans: readonly { readonly span: number; readonly mayHold: boolean }[];
  readonly bytesRead: number;
}

/** Bytes that are no UTF-8 become U+FFFD only when they are decoded. */
const replacement = Buffer.from('\ufffd');

/**
 * Looks for needles in the strings of pages as they are stored: nothing is decoded, and what no needle stands in is no value that holds
 * one. Null where the strings do not stand there as they are, so that they have to be decoded. Blocks, and throws, as `decodeParquet` does.
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

/** Whether all strings stand in the data pages or in the dictionary. */
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
    // Pages of codes hold a needle where an entry does: which of them, decoding will tell.
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

/** Whether a needle may stand in a string of the page. Throws `FormatError` where the page does not consist of its strings. */
function holdsIn({ values, present, at }: StoredPage, needles: readonly KernelNeedle[]): boolean {
  const verdict: BlockVerdict = present === 0 ? 'none' : searchPlainStrings(values, present, needles);
  if (verdict === 'malformed') throw new FormatError('strings that do not fill their page', at);
  return verdict === 'may';
}
