import { columnLayout, type ColumnLayout } from '../../columns/column-layout.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { decodingScratchBytes } from '../../parquet/chunk-decoder.js';
import { RangeSpace } from '../../parquet/column-space.js';
import { openDecompressor } from '../../parquet/compression.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import type { ChunkJob } from './chunk-task.js';
import { openFiles } from '../disk/open-files.js';
import { cutOff, decodeConverted } from '../sealed/segment-file.js';

/** A `ChunkJob` with the range of the pool's memory to decode into. */
export interface PooledChunkJob extends ChunkJob {
  readonly range: MemoryRange;
}

/** The layout of the decoded column in the range, and the bytes of the range that it takes. */
export interface PooledChunk {
  readonly layout: ColumnLayout;
  readonly columnBytes: number;
}

/** Reads, checks and decodes a column chunk into shared memory. Throws `DamageError`, and what reading a file throws. */
export async function work(job: PooledChunkJob): Promise<Finished<PooledChunk>> {
  const { file, chunk, range } = job;
  const decompress = await openDecompressor(chunk.codec);
  const memory = foreignMemory(range);
  const space = new RangeSpace(memory, range.address, range.sizeBytes);
  const scratch = space.working(decodingScratchBytes(chunk.rows));
  const bytes = space.working(chunk.bytes);
  const read = openFiles.read(file, chunk.offset, bytes);
  if (read < bytes.length) throw cutOff(chunk.path, chunk.offset + read, chunk.offset + chunk.bytes);
  const place = { address: scratch.byteOffset, bytes: scratch.length };
  const column = workingOn(memory, place, () => decodeConverted(bytes, chunk, job, decompress, space));
  return { result: { layout: columnLayout(column), columnBytes: space.columnBytes }, transfer: [] };
}

/** Reads a column chunk and decodes it into the pool's memory on a thread. */
export const pooledChunkTask: Task<PooledChunkJob, PooledChunk> = {
  module: builtModule(import.meta.url),
  work,
};
