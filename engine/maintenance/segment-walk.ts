import { crc32 } from 'node:zlib';
import { pageBytesMax } from '../terms/limits.js';
import type { ChunkPlace } from '../parquet/footer.js';
import { FormatError } from '../parquet/format.js';
import { readPageHeader, type PageHeader } from '../parquet/page-header.js';
import type { ReadableFile } from '../store/disk/directory.js';
import type { SegmentHeader } from '../store/sealed/segment-header.js';

/** Upper bound on the length of a page header, which is about 60 bytes. */
const headerBytesMax = 128;

/** The place of a column chunk's pages. Each page matches the checksum in its header. */
export type WalkedChunk = Omit<ChunkPlace, 'bounds'>;

interface Page {
  readonly header: PageHeader;
  /** Length of the page including its header. */
  readonly bytes: number;
  readonly headerBytes: number;
}

/**
 * Finds the column chunks of a sealed segment without its footer. Returns those of each row group; undefined for a damaged one.
 *
 * @param header header of the segment, which has the offset of each row group
 */
export async function walkSegment(
  file: ReadableFile,
  { facts, schema, rowGroupOffsets }: SegmentHeader,
): Promise<(readonly WalkedChunk[] | undefined)[]> {
  const walk = new PageWalk(file, facts.footerOffset);
  const found: (readonly WalkedChunk[] | undefined)[] = [];
  for (const [group, rows] of facts.rowGroupRows.entries()) {
    const chunks = await walk.chunksFrom(rowGroupOffsets[group]!, schema.fields.length);
    const isWhole = chunks.length === schema.fields.length && chunks.every((chunk) => chunk.rows === rows);
    found.push(isWhole ? chunks : undefined);
  }
  return found;
}

class PageWalk {
  constructor(
    private readonly file: ReadableFile,
    /** Offset at which pages end. */
    private readonly limit: number,
  ) {}

  /** Up to `count` consecutive chunks from `start` on. */
  async chunksFrom(start: number, count: number): Promise<WalkedChunk[]> {
    const chunks: WalkedChunk[] = [];
    for (let at = start; chunks.length < count; at += chunks.at(-1)!.bytes) {
      const chunk = await this.chunk(at);
      if (chunk === null) break;
      chunks.push(chunk);
    }
    return chunks;
  }

  private async chunk(at: number): Promise<WalkedChunk | null> {
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
    };
  }

  /** The page at `at`; null if there is none or if its checksum does not match. */
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
}

function plainBytes({ header, headerBytes }: Page): number {
  return headerBytes + header.uncompressedBytes;
}
