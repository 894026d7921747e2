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

/** A column chunk of strings to search. Every value that matches the predicate contains one of the needles. */
export interface StreamJob {
  /** Absolute path of the file. */
  readonly file: string;
  readonly chunk: StoredChunk;
  readonly needles: readonly KernelNeedle[];
}

/** The result of searching a chunk. */
export interface SearchedChunk {
  /**
   * Whether a value may contain one of the needles. Also true where there is no memory for the search, and for a damaged chunk, so that
   * the caller decodes it and gets the error.
   */
  readonly mayHold: boolean;
  readonly bytesRead: number;
}

/**
 * Searches a column chunk without keeping it. Reads the chunk piece by piece; while a piece is in the CPU's caches, it is added to the
 * checksum, decompressed and searched. `mayHold` is false only if the checksum of the whole chunk is right. Throws what reading a file
 * throws.
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

/**
 * The only page of a chunk: where its values begin, and their length after decompression, which is null where they are stored
 * uncompressed. Null for a chunk of any other shape, and where the page is longer than `pageBytesMax`.
 */
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

/** Searches a column chunk on a thread. */
export const streamTask: Task<StreamJob, SearchedChunk> = { module: builtModule(import.meta.url), work };
