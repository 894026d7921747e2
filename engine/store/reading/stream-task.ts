import type { KernelNeedle } from '../../kernels/needle.js';
import { withKeptScratch } from '../../memory/scratch.js';
import { BlockSearch, searchRoomBytes } from '../../kernels/block-search.js';
import { crc32, crc32RoomBytes } from '../../kernels/crc32.js';
import { bufferBytes } from '../../memory/allocator.js';
import { pageBytesMax, streamedPieceBytes } from '../../terms/limits.js';
import { FormatError } from '../../parquet/format.js';
import { readPageHeader } from '../../parquet/page-header.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import type { StoredChunk } from '../sealed/segment-file.js';

/** A column chunk of strings to be searched. Every value that is looked for holds one of the needles. */
export interface StreamJob {
  /** Absolute path of the file. */
  readonly file: string;
  readonly chunk: StoredChunk;
  readonly needles: readonly KernelNeedle[];
}

/** What the search of a chunk has shown. */
export interface SearchedChunk {
  /**
   * Whether the chunk may hold such a value. True also where there is no memory to go through it, and for a damaged chunk: decoding
   * it says what is wrong.
   */
  readonly mayHold: boolean;
  readonly bytesRead: number;
}

/**
 * Searches a column chunk without keeping it. The chunk is read piece by piece. While a piece is in the nearest caches, its checksum is
 * added up, it is decompressed, and the result is searched. "Not there" is only said of a chunk whose checksum is right. Throws what reading
 * a file throws.
 */
export function work(job: StreamJob): Finished<SearchedChunk> {
  const { chunk, needles } = job;
  const chunkBytes = bufferBytes(chunk.bytes);
  const result = withKeptScratch(chunkBytes + searchRoomBytes(needles), crc32RoomBytes, (kept) => {
    if (kept === null) return { mayHold: true, bytesRead: 0 };
    return searchChunk(job, kept.subarray(0, chunk.bytes), kept.subarray(chunkBytes));
  });
  return { result, transfer: [] };
}

function searchChunk(
  { file, chunk, needles }: StreamJob,
  bytes: Uint8Array,
  room: Uint8Array,
): SearchedChunk {
  let search: BlockSearch | null = null;
  let bodyAt = 0;
  let checksum = 0;
  let done = 0;
  while (done < bytes.length) {
    const piece = bytes.subarray(done, done + streamedPieceBytes);
    const read = openFiles.read(file, chunk.offset + done, piece);
    if (read < piece.length) return { mayHold: true, bytesRead: done + read };
    checksum = crc32(piece, checksum);
    const isFirst = done === 0;
    done += read;
    if (isFirst) {
      const page = pageOf(bytes, done);
      if (page === null) return { mayHold: true, bytesRead: done };
      bodyAt = page.bodyAt;
      search = new BlockSearch(bytes.subarray(bodyAt), page.length, needles, room);
    }
    if (search!.search(done - bodyAt) !== 'none') return { mayHold: true, bytesRead: done };
  }
  return { mayHold: search === null || checksum !== chunk.checksum, bytesRead: done };
}

/** Where the values of the one page of a chunk begin, and what they decompress to, null if they need not be; null for anything else. */
function pageOf(chunk: Uint8Array, readBytes: number): { bodyAt: number; length: number | null } | null {
  try {
    const { header, bodyAt } = readPageHeader(chunk.subarray(0, readBytes), 0, chunk.length);
    const valuesAt = bodyAt + (header.kind === 'data' ? header.levelBytes : 0);
    if (header.kind !== 'data' || bodyAt + header.bytes !== chunk.length || valuesAt > readBytes) return null;
    const length = header.uncompressedBytes - header.levelBytes;
    if (length > pageBytesMax) return null;
    return { bodyAt: valuesAt, length: header.compressed ? length : null };
  } catch (error) {
    if (error instanceof FormatError) return null;
    throw error;
  }
}

/** Has a column chunk searched. */
export const streamTask: Task<StreamJob, SearchedChunk> = { module: builtModule(import.meta.url), work };
