import { crc32 } from 'node:zlib';
import { pageBytesMax, verifyPieceBytes } from '../limits.js';
import type { ChunkPlace } from '../parquet/footer.js';
import { FormatError, magic, pageType } from '../parquet/format.js';
import { readPageHeader, type PageHeader } from '../parquet/page-header.js';
import type { ReadableFile } from '../storage/directory.js';
import { checkedPiece, pieceBytes, pieceStoredBytesMax } from '../storage/gram-filter.js';
import type { SegmentEntry } from '../storage/manifest.js';

/** A page header has some 60 bytes at most. */
const headerBytesMax = 128;

/** The smallest bitmap of a gram filter, in bytes. */
const bitmapBytesMin = 128;

/** Where the pages of a column chunk lie, each of them with the checksum that its header gives. */
export interface WalkedChunk extends Omit<ChunkPlace, 'bounds'> {
  /** Something else stands before it than a chunk: a gram filter, or the beginning of the walk. */
  readonly isFirst: boolean;
}

interface Page {
  readonly header: PageHeader;
  /** With its header. */
  readonly bytes: number;
  readonly headerBytes: number;
}

/**
 * Finds the chunks of a sealed segment's fields without its footer, row group by row group; undefined for those that are not
 * whole, or of which nothing tells which they are.
 *
 * Pages follow one another without gaps, so that walking from the beginning on finds each row group up to the first damage. Behind
 * damage a row group is known by those that follow it: only where the walk goes on, without another gap, through the chunks of
 * `_cursor` to the place where the footer began, as the manifest says, can they be counted from the back. Where the segment's header
 * tells where each row group begins, it is looked for there and nowhere else.
 *
 * @param columns of the schema, without `_cursor`
 * @param offsets of the row groups in the file, if they are known
 */
export async function walkSegment(
  file: ReadableFile,
  entry: SegmentEntry,
  columns: number,
  offsets?: readonly number[],
): Promise<(readonly WalkedChunk[] | undefined)[]> {
  const groups = entry.rowGroupRows.length;
  const found = new Array<readonly WalkedChunk[] | undefined>(groups).fill(undefined);
  const walk = new Walk(file, entry.footerOffset);
  if (offsets !== undefined) {
    for (const [group, offset] of offsets.entries())
      take(found, group, await walk.chunksFrom(offset, columns), columns, entry);
    return found;
  }
  let chain = await walk.from(magic.length + (entry.headerBytes ?? 0));
  for (let group = 0; group < groups; group++)
    take(found, group, chain.chunks.slice(group * columns, (group + 1) * columns), columns, entry);
  while (chain.end < entry.footerOffset) {
    const next = await walk.nextPage(chain.end + 1);
    if (next < 0) return found;
    chain = await walk.from(next);
  }
  // The last chunks are those of `_cursor`, one for each row group.
  let end = chain.chunks.length - groups;
  for (let group = groups - 1; group >= 0 && end >= columns; group--, end -= columns)
    if (!take(found, group, chain.chunks.slice(end - columns, end), columns, entry)) break;
  return found;
}

/** Takes chunks for those of a row group if they can be. */
function take(
  found: (readonly WalkedChunk[] | undefined)[],
  group: number,
  chunks: readonly WalkedChunk[],
  columns: number,
  entry: SegmentEntry,
): boolean {
  const rows = entry.rowGroupRows[group];
  const fits =
    chunks.length === columns &&
    chunks.every((chunk, i) => chunk.rows === rows && (i === 0 || !chunk.isFirst));
  if (fits) found[group] = chunks;
  return fits;
}

class Walk {
  constructor(
    private readonly file: ReadableFile,
    /** Pages end here. */
    private readonly limit: number,
  ) {}

  /** The chunks from `start` on, as far as each page is what its header says, and where that ends. */
  async from(start: number): Promise<{ chunks: WalkedChunk[]; end: number }> {
    const chunks: WalkedChunk[] = [];
    let isFirst = true;
    for (let at = start; at < this.limit;) {
      const chunk = await this.chunk(at, isFirst);
      if (chunk !== null) chunks.push(chunk);
      const bytes = chunk?.bytes ?? (await this.gramPiece(at));
      if (bytes === 0) return { chunks, end: at };
      at += bytes;
      isFirst = chunk === null;
    }
    return { chunks, end: this.limit };
  }

  /** The chunks that stand one behind another from `start` on, at most `count`. */
  async chunksFrom(start: number, count: number): Promise<WalkedChunk[]> {
    const chunks: WalkedChunk[] = [];
    for (let at = start; chunks.length < count; at += chunks.at(-1)!.bytes) {
      const chunk = await this.chunk(at, chunks.length === 0);
      if (chunk === null) break;
      chunks.push(chunk);
    }
    return chunks;
  }

  private async chunk(at: number, isFirst: boolean): Promise<WalkedChunk | null> {
    const first = await this.page(at);
    if (first === null) return null;
    const dictionary = first.header.kind === 'dictionary' ? first : null;
    const data = dictionary === null ? first : await this.page(at + first.bytes);
    if (data === null || data.header.kind !== 'data') return null;
    const { header } = data;
    return {
      offset: at,
      bytes: (dictionary?.bytes ?? 0) + data.bytes,
      dictionaryPageBytes: dictionary?.bytes ?? 0,
      uncompressedBytes: (dictionary === null ? 0 : plainBytes(dictionary)) + plainBytes(data),
      dataEncoding: header.encoding,
      rows: header.rows,
      nullCount: header.nullCount,
      isFirst,
    };
  }

  /** The page at `at`, if there is one and it matches its checksum. */
  private async page(at: number): Promise<Page | null> {
    const bytes = await this.file.read(at, Math.min(headerBytesMax, this.limit - at));
    try {
      const { header, bodyAt } = readPageHeader(bytes, 0, this.limit - at);
      if (header.bytes > pageBytesMax || header.uncompressedBytes > pageBytesMax) return null;
      const body = await this.file.read(at + bodyAt, header.bytes);
      if (body.length !== header.bytes || crc32(body) !== header.checksum) return null;
      return { header, bytes: bodyAt + header.bytes, headerBytes: bodyAt };
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      return null;
    }
  }

  /** Bytes of the piece of a gram filter at `at`, with its checksum; 0 when there is none. */
  private async gramPiece(at: number): Promise<number> {
    const bytes = await this.file.read(at, Math.min(pieceStoredBytesMax, this.limit - at));
    for (let bitmapBytes = pieceBytes; bitmapBytes >= bitmapBytesMin; bitmapBytes /= 2) {
      const storedBytes = bitmapBytes + pieceStoredBytesMax - pieceBytes;
      const stored = bytes.subarray(0, storedBytes);
      if (checkedPiece(stored, { offset: 0, bitmapBytes, storedBytes }) !== null) return storedBytes;
    }
    return 0;
  }

  /** Where the next page from `start` on begins that matches its checksum; −1 when there is none. */
  async nextPage(start: number): Promise<number> {
    for (let at = start; at < this.limit; at += verifyPieceBytes) {
      // The pieces overlap by the bytes that a header begins with.
      const bytes = await this.file.read(at, Math.min(verifyPieceBytes + 2, this.limit - at));
      for (let i = 0; i + 2 < bytes.length; i++)
        if (mayBeginPage(bytes, i) && (await this.page(at + i)) !== null) return at + i;
      if (bytes.length === 0) return -1;
    }
    return -1;
  }
}

function plainBytes({ header, headerBytes }: Page): number {
  return headerBytes + header.uncompressedBytes;
}

/** A header begins with field 1, the type of the page, and field 2, both of the Thrift type for 32-bit integers. */
function mayBeginPage(bytes: Uint8Array, at: number): boolean {
  const type = bytes[at + 1]!;
  return (
    bytes[at] === 0x15 &&
    bytes[at + 2] === 0x15 &&
    (type === 2 * pageType.dictionary || type === 2 * pageType.dataV2)
  );
}
