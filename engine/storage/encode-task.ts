import { arraysOf } from '../column.js';
import { encoderKeptBytesMax, workerRowsMin } from '../limits.js';
import { ChunkEncoder } from '../parquet/chunk-encoder.js';
import { openCompressor } from '../parquet/compression.js';
import type { Schema } from '../schema.js';
import { buffersOf, builtModule, type Finished, type Task } from '../workers/task.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { Codec } from './manifest.js';
import { batchBytes } from './spill.js';
import { encodeSlices, type EncodedRowGroup } from './row-group-encoder.js';
import type { RowSlices } from './row-slices.js';

interface EncodeJob {
  readonly schema: Schema;
  readonly codec: Codec;
  readonly slices: RowSlices;
}

/** The encoder of the last job, whose buffers serve the next: they are as large as its columns. */
let kept: { readonly codec: Codec; readonly encoder: ChunkEncoder } | undefined;

async function encoderOf(codec: Codec, sizeBytes: number): Promise<ChunkEncoder> {
  if (kept?.codec === codec) return kept.encoder;
  const encoder = new ChunkEncoder(await openCompressor(codec));
  if (sizeBytes <= encoderKeptBytesMax) kept = { codec, encoder };
  return encoder;
}

/** Encodes a row group: the work of `encodeOnPool`. */
export async function work({ schema, codec, slices }: EncodeJob): Promise<Finished<EncodedRowGroup>> {
  const sizeBytes = slices.pages.reduce((sum, page) => sum + batchBytes(page), 0);
  if (sizeBytes > encoderKeptBytesMax) kept = undefined;
  const encoder = await encoderOf(codec, sizeBytes);
  const result = encodeSlices(encoder, schema, slices);
  const chunks = result.chunks.map(({ bytes }) => bytes);
  const filters = result.gramFilters.map(({ filter }) => filter.bytes);
  return { result, transfer: buffersOf([...chunks, ...filters]) };
}

const encodeTask: Task<EncodeJob, EncodedRowGroup> = { module: builtModule(import.meta.url), work };

/**
 * Encodes a row group on a thread of the pool, a small one at once. The pages must be the caller's alone: their memory moves
 * to the thread.
 */
export async function encodeOnPool(
  pool: WorkerPool,
  schema: Schema,
  codec: Codec,
  slices: RowSlices,
): Promise<EncodedRowGroup> {
  const job = { schema, codec, slices };
  if (slices.rows < workerRowsMin) return (await work(job)).result;
  const columns = slices.pages.flatMap((page) => page.columns);
  return pool.run(encodeTask, job, buffersOf(columns.flatMap(arraysOf)));
}
