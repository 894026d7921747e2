import { filterBlockBytes } from '../kernels/value-filter.js';
import { blockOfHash, isInBlock, type ValueHash } from '../parquet/bloom-filter.js';
import { FormatError, encoding, physicalType } from '../parquet/format.js';
import { readThrift, type ThriftBounds } from '../parquet/thrift-reader.js';
import { OpenFiles } from '../store/disk/open-files.js';
import type { ForeignPlace } from '../objects/object-blocks.js';
import { readForeignBytes } from './foreign-source.js';
import type { BlockVerdict } from '../kernels/block-search.js';
import { needlesBytes, type KernelNeedle } from '../kernels/needle.js';
import { searchPlainStrings } from '../kernels/plain-strings.js';
import type { Arena } from '../core/arena.js';
import type { Decompress } from '../parquet/compression.js';
import { type ForeignRead, withErrorsNamed } from './foreign-file.js';
import { openPageDecompressor } from './page-codec.js';
import { ChunkBytes } from './chunk-bytes.js';
import {
  hasCodes,
  type DataPage,
  type SpanPages,
  findPages,
  withPageRoom,
  readDataPage,
  readDictionaryPage,
  type PageReading,
  type StoredPage,
} from './chunk-pages.js';

/** A Bloom filter that the file itself has of a column chunk. `bytes` is 0 where the file does not give the length. */
export interface OwnFilter {
  readonly offset: number;
  readonly bytes: number;
}

/** The answer of a filter. */
export interface OwnFilterAnswer {
  /** Whether one of the values may be in the chunk. True for a filter that is not valid. */
  readonly mayHave: boolean;
  readonly bytesRead: number;
  /** Number of reads: the header, and one per block. */
  readonly piecesRead: number;
}

/** Upper bound of the header's size. It has three structures that each hold an empty one, and takes about twenty bytes. */
const headerBytesMax = 64;
const headerBounds: ThriftBounds = { valuesMax: 16, handedOver: new Map() };

/**
 * Tests values against the split-block Bloom filter that another program wrote into the file. Reads its header, and one
 * block per value. The format has no checksum; a filter whose header contradicts itself or the footer is not used. Throws
 * `not_found` and `io`, and `absent` for bytes of an object that are not on this machine.
 */
export function askOwnFilter(
  place: ForeignPlace,
  filter: OwnFilter,
  hashes: readonly ValueHash[],
): OwnFilterAnswer {
  const files = new OpenFiles(1);
  let bytesRead = 0;
  const read = (at: number, length: number): Uint8Array => {
    const bytes = new Uint8Array(length);
    const done = readForeignBytes(place, at, bytes, files);
    bytesRead += done;
    return bytes.subarray(0, done);
  };
  try {
    const { offset, bytes } = filter;
    const found = readHeader(read(offset, bytes > 0 ? Math.min(bytes, headerBytesMax) : headerBytesMax));
    const { headerBytes, filterBytes } = found ?? { headerBytes: 0, filterBytes: 0 };
    const isWhole = found !== null && (bytes === 0 || bytes === headerBytes + filterBytes);
    if (!isWhole) return { mayHave: true, bytesRead, piecesRead: 1 };
    const blocks = filterBytes / filterBlockBytes;
    let piecesRead = 1;
    const mayHave = hashes.some((hash) => {
      const at = offset + headerBytes + blockOfHash(hash, blocks) * filterBlockBytes;
      const block = read(at, filterBlockBytes);
      piecesRead++;
      return block.length < filterBlockBytes || isInBlock(block, 0, hash);
    });
    return { mayHave, bytesRead, piecesRead };
  } finally {
    files.close();
  }
}

/** Reads the `BloomFilterHeader`: its size, and the size of the blocks after it. Null where it is malformed or of another kind. */
function readHeader(bytes: Uint8Array): { headerBytes: number; filterBytes: number } | null {
  try {
    const { fields, end } = readThrift(bytes, 0, headerBounds);
    const filterBytes = fields.size(1);
    const isKnown = [2, 3, 4].every((id) => fields.has(id) && fields.struct(id).has(1));
    const isPossible = filterBytes > 0 && filterBytes % filterBlockBytes === 0;
    return isKnown && isPossible ? { headerBytes: end, filterBytes } : null;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return null;
  }
}

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
    const reading: PageReading = {
      bytes,
      codec: chunk.codec,
      decompress,
      definitionMax: Number(column.nullable),
      repetitionMax: 0,
      room,
    };
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
