import { arraysOf, type RecordBatch } from '../../columns/column.js';
import { leaseMemory } from '../../memory/memory-lease.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../memory/shared-memory.js';
import { workerRowsMin } from '../../terms/limits.js';
import { unpackBatch } from '../../columns/packed-batch.js';
import { type Codec, openCompressor } from '../../parquet/compression.js';
import { heap, RangeArena, type Arena } from '../../memory/arena.js';
import type { Schema } from '../../terms/schema.js';
import type { InOrder } from '../../workers/in-order.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { encodeRowGroup, encodingBytesMax, type EncodedRowGroup } from './row-group-encoder.js';
import { gatheredBytesMax, type RowSlices } from '../../columns/take.js';

interface EncodeJob {
  readonly schema: Schema;
  readonly codec: Codec;
  /** The pages of the heap move to the thread. Those in lent memory are empty here. */
  readonly slices: RowSlices;
  /** For each page in lent memory where it lies; null for one of the heap. */
  readonly lent: readonly (MemoryRange | null)[] | null;
  /** Memory for the work and for what comes of it; without it the thread takes its own. */
  readonly space: { readonly scratch: MemoryRange; readonly output: MemoryRange } | null;
}

/** A row group that may lie in lent memory: `free` gives that back. */
export interface LentRowGroup {
  readonly encoded: EncodedRowGroup;
  free(): void;
}

/** Encodes a row group: the work of `encodeOnPool`. */
export async function work(job: EncodeJob): Promise<Finished<EncodedRowGroup>> {
  const { schema, codec, lent, space } = job;
  const slices = lent === null ? job.slices : seenFromHere(job.slices, lent);
  const compress = await openCompressor(codec);
  const encode = (output: Arena): EncodedRowGroup => encodeRowGroup(schema, slices, compress, output);
  const result = space === null ? encode(heap) : encodeWithin(space, encode);
  const chunks = result.chunks.map(({ bytes }) => bytes);
  const filters = [
    ...result.gramFilters.map(({ filter }) => filter.bytes),
    ...result.valueFilters.flatMap((filter) =>
      filter === null || filter.blocks === 0 ? [] : [filter.bytes, filter.sketch],
    ),
  ];
  return { result, transfer: buffersOf([...chunks, ...filters]) };
}

/** The slices with views of the pages that are lent. */
function seenFromHere(slices: RowSlices, lent: readonly (MemoryRange | null)[]): RowSlices {
  const pages = slices.pages.map((page, i) => {
    const range = lent[i] ?? null;
    return range === null ? page : unpackBatch(foreignMemory(range).bytesAt(range), 0);
  });
  return { ...slices, pages };
}

function encodeWithin(
  { scratch, output }: NonNullable<EncodeJob['space']>,
  encode: (output: Arena) => EncodedRowGroup,
): EncodedRowGroup {
  const memory = foreignMemory(scratch);
  const place = { address: scratch.address, bytes: scratch.sizeBytes };
  return workingOn(memory, place, () => encode(new RangeArena(memory.bytesAt(output)).take));
}

const encodeTask: Task<EncodeJob, EncodedRowGroup> = {
  module: builtModule(import.meta.url),
  work,
  isLong: true,
};

/** Takes the place of a page that is lent. */
const noPage: RecordBatch = { length: 0, columns: [] };

/** The part of their size that rows usually compress to. Chunks that do not fit are put on the heap. */
const outputShare = 1 / 2;
const outputFieldBytes = 64 * 1024;

/**
 * Encodes a row group on a thread of the pool, a small one at once. Pages that are not lent must be the caller's alone: their
 * memory moves to the thread.
 *
 * @param lent for each page where threads see it; null for a page of the heap
 */
export async function encodeOnPool(
  pool: WorkerPool,
  schema: Schema,
  codec: Codec,
  slices: RowSlices,
  lent: readonly (MemoryRange | null)[] = slices.pages.map(() => null),
): Promise<LentRowGroup> {
  const job = { schema, codec, slices };
  if (slices.rows < workerRowsMin || pool.threads === 0) {
    const { result } = await work({ ...job, lent: null, space: null });
    return { encoded: result, free: () => {} };
  }
  const pages = slices.pages.map((page, i) => (lent[i] === null ? page : noPage));
  const scratch = leaseMemory(encodingBytesMax(schema, slices));
  const output = scratch === null ? null : leaseMemory(outputBytes(schema, slices));
  const space = output === null ? null : { scratch: scratch!.range, output: output.range };
  try {
    const transfer = buffersOf(pages.flatMap((page) => page.columns).flatMap(arraysOf));
    const encoded = await pool.run(
      encodeTask,
      { ...job, slices: { ...slices, pages }, lent, space },
      transfer,
    );
    return { encoded, free: () => output?.free() };
  } catch (error) {
    output?.free();
    throw error;
  } finally {
    scratch?.free();
  }
}

/** Has a row group encoded and then written, in its turn. */
export async function encodeInTurn(
  encoding: InOrder,
  encode: () => Promise<LentRowGroup>,
  write: (encoded: EncodedRowGroup) => Promise<void>,
): Promise<void> {
  await encoding.add(
    encode,
    async ({ encoded, free }) => {
      try {
        await write(encoded);
      } finally {
        free();
      }
    },
    ({ free }) => free(),
  );
}

function outputBytes(schema: Schema, slices: RowSlices): number {
  const sizes = schema.fields.map(({ type }, i) => gatheredBytesMax(slices, i, type));
  const sum = sizes.reduce((total, size) => total + size, 0);
  return Math.ceil(sum * outputShare) + sizes.length * outputFieldBytes;
}
