import {
  columnAt,
  columnLayout,
  layoutEnd,
  type ColumnLayout,
  arraysOf,
  type Column,
} from '../../columns/column.js';
import type { Conversion } from '../../columns/convert-column.js';
import { BlockSearch, searchRoomBytes } from '../../kernels/block-search.js';
import { crc32, crc32RoomBytes } from '../../kernels/crc32.js';
import type { KernelNeedle } from '../../kernels/needle.js';
import { bufferBytes } from '../../core/allocator.js';
import { withKeptScratch } from '../../core/scratch.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../core/shared-memory.js';
import { decodingScratchBytes } from '../../parquet/chunk-decoder.js';
import { heapSpace, RangeSpace, type ColumnSpace } from '../../parquet/column-space.js';
import { openDecompressor } from '../../parquet/compression.js';
import { FormatError } from '../../parquet/format.js';
import { readPageHeader } from '../../parquet/page-header.js';
import { pageBytesMax, filePieceBytes } from '../../core/limits.js';
import type { FieldType } from '../../core/schema.js';
import { buffersOf, taskIn, type Finished } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { cutOff, decodeConverted, type StoredChunk } from '../sealed/segment-file.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';

/** A column chunk in a local file, and the conversion of its values to a field's type. */
export interface ChunkJob {
  /** Absolute path of the file. */
  readonly file: string;
  readonly chunk: StoredChunk;
  readonly conversion: Conversion;
  /** Type of the field that is read. */
  readonly type: FieldType;
}

/** A `ChunkJob` with the range of the pool's memory to decode into; null to decode onto the heap. */
interface FillJob extends ChunkJob {
  readonly range: MemoryRange | null;
}

/** A column on the heap, or its layout in the range and the bytes of the range that it takes. */
interface FilledChunk {
  readonly column: Column | null;
  readonly layout: ColumnLayout | null;
  readonly columnBytes: number;
}

/** Has a thread read a column chunk and decode it into `space`. */
export async function readChunk(
  threads: Pick<JobQueue, 'run'>,
  job: ChunkJob,
  space: ColumnSpace,
): Promise<Column> {
  const pooled = space instanceof RangeSpace ? space : null;
  const range = pooled && pooled.memory.rangeAt(pooled.address, pooled.sizeBytes);
  const filled = await threads.run(fillTask, { ...job, range }, [], job.chunk.bytes);
  const { column, layout, columnBytes } = filled;
  pooled?.filled(columnBytes);
  return column ?? columnAt(pooled!.memory.bufferUpTo(layoutEnd(layout!)), layout!);
}

/** Has a thread search a column chunk without keeping it; returns whether the chunk may hold one of the needles. */
export async function searchStored(
  threads: JobQueue,
  job: StreamJob,
  counters: ReadCounters,
): Promise<boolean> {
  counters.columnsDecoded++;
  const { mayHold, bytesRead } = await threads.run(searchTask, job, [], job.chunk.bytes);
  counters.bytesRead += bytesRead;
  return mayHold;
}

/** Reads, checks and decodes a column chunk. Throws `DamageError`, and what reading a file throws. */
export async function fillChunk(job: FillJob): Promise<Finished<FilledChunk>> {
  const { file, chunk, range } = job;
  const decompress = await openDecompressor(chunk.codec);
  if (range === null) {
    const bytes = new Uint8Array(chunk.bytes);
    readWhole(file, chunk, bytes);
    const column = decodeConverted(bytes, chunk, job, decompress, heapSpace);
    return { result: { column, layout: null, columnBytes: 0 }, transfer: buffersOf(arraysOf(column)) };
  }
  const memory = foreignMemory(range);
  const space = new RangeSpace(memory, range.address, range.sizeBytes);
  const scratch = space.working(decodingScratchBytes(chunk.rows));
  const bytes = space.working(chunk.bytes);
  readWhole(file, chunk, bytes);
  const place = { address: scratch.byteOffset, bytes: scratch.length };
  const column = workingOn(memory, place, () => decodeConverted(bytes, chunk, job, decompress, space));
  const result = { column: null, layout: columnLayout(column), columnBytes: space.columnBytes };
  return { result, transfer: [] };
}

function readWhole(file: string, { path, offset, bytes }: StoredChunk, into: Uint8Array): void {
  const read = openFiles.read(file, offset, into);
  if (read < bytes) throw cutOff(path, offset + read, offset + bytes);
}

/** A column chunk of strings to search. Every value that matches the predicate contains one of the needles. */
interface StreamJob {
  /** Absolute path of the file. */
  readonly file: string;
  readonly chunk: StoredChunk;
  readonly needles: readonly KernelNeedle[];
}

/** The result of searching a chunk. */
interface SearchedChunk {
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
export function searchChunk(job: StreamJob): Finished<SearchedChunk> {
  const { chunk, needles } = job;
  const chunkBytes = bufferBytes(chunk.bytes);
  const result = withKeptScratch(chunkBytes + searchRoomBytes(needles), crc32RoomBytes, (kept) => {
    if (kept === null) return { mayHold: true, bytesRead: 0 };
    return searchPieces(job, kept.subarray(0, chunk.bytes), kept.subarray(chunkBytes));
  });
  return { result, transfer: [] };
}

function searchPieces(
  { file, chunk, needles }: StreamJob,
  bytes: Uint8Array,
  room: Uint8Array,
): SearchedChunk {
  let search: BlockSearch | null = null;
  let bodyAt = 0;
  let checksum = 0;
  let done = 0;
  while (done < bytes.length) {
    const piece = bytes.subarray(done, done + filePieceBytes);
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

const fillTask = taskIn(import.meta.url, { fillChunk });

const searchTask = taskIn(import.meta.url, { searchChunk });
