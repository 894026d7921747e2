import { arraysOf, type RecordBatch } from '../column.js';
import { encoderKeptBytesMax, workerRowsMin } from '../limits.js';
import { ChunkEncoder } from '../parquet/chunk-encoder.js';
import { openCompressor } from '../parquet/compression.js';
import type { Schema } from '../schema.js';
import { buffersOf, builtModule, type Finished, type Task } from '../workers/task.js';
import type { WorkerPool } from '../workers/worker-pool.js';
import type { Codec } from './manifest.js';
import { batchBytes } from './spill.js';
import { encodeRowGroup, type EncodedRowGroup } from './row-group-encoder.js';

interface EncodeJob {
  readonly schema: Schema;
  readonly codec: Codec;
  readonly batch: RecordBatch;
}

/** The encoder of the last job, whose buffers serve the next: they are as large as its columns. */
let kept: { readonly codec: Codec; readonly encoder: ChunkEncoder } | undefined;

async function encoderOf(codec: Codec, batch: RecordBatch): Promise<ChunkEncoder> {
  if (kept?.codec === codec) return kept.encoder;
  const encoder = new ChunkEncoder(await openCompressor(codec));
  if (batchBytes(batch) <= encoderKeptBytesMax) kept = { codec, encoder };
  return encoder;
}

/** Encodes a row group: the work of `encodeOnPool`. */
export async function work({ schema, codec, batch }: EncodeJob): Promise<Finished<EncodedRowGroup>> {
  if (batchBytes(batch) > encoderKeptBytesMax) kept = undefined;
  const encoder = await encoderOf(codec, batch);
  const result = encodeRowGroup(encoder, schema, batch.columns, batch.length);
  const chunks = result.chunks.map(({ bytes }) => bytes);
  const filters = result.gramFilters.map(({ filter }) => filter.bytes);
  return { result, transfer: buffersOf([...chunks, ...filters]) };
}

const encodeTask: Task<EncodeJob, EncodedRowGroup> = { module: builtModule(import.meta.url), work };

/**
 * Encodes a row group on a thread of the pool, a small one at once. The batch must be the caller's alone: its memory moves
 * to the thread.
 */
export async function encodeOnPool(
  pool: WorkerPool,
  schema: Schema,
  codec: Codec,
  batch: RecordBatch,
): Promise<EncodedRowGroup> {
  const job = { schema, codec, batch };
  if (batch.length < workerRowsMin) return (await work(job)).result;
  return pool.run(encodeTask, job, buffersOf(batch.columns.flatMap(arraysOf)));
}
