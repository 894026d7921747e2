import { arraysOf, type RecordBatch } from '../../columns/column.js';
import { leaseMemory } from '../../core/memory-lease.js';
import { foreignMemory, workingOn, type MemoryRange } from '../../core/shared-memory.js';
import { workerRowsMin } from '../../core/limits.js';
import { unpackBatch } from '../../columns/packed-batch.js';
import { type Codec, openCompressor } from '../../parquet/compression.js';
import { heap, RangeArena, type Arena } from '../../core/arena.js';
import type { Schema } from '../../core/schema.js';
import { startInOrder, type Pending } from '../../workers/in-order.js';
import { buffersOf, taskIn, type Finished } from '../../workers/task.js';
import type { WorkerPool } from '../../workers/worker-pool.js';
import { encodeRowGroup, encodingBytesMax, type EncodedRowGroup } from './row-group-encoder.js';
import { gatheredBatchBytesMax, type RowSlices } from '../../columns/take.js';

interface EncodeJob {
  readonly schema: Schema;
  readonly codec: Codec;
  /** The rows. Pages on the heap are moved to the thread. Pages in lent memory are sent as empty pages. */
  readonly slices: RowSlices;
  /** For each page, its range of lent memory; null for a page on the heap. */
  readonly lent: readonly (MemoryRange | null)[] | null;
  /** Lent memory for scratch data and for the result. If null, the thread allocates its own. */
  readonly space: { readonly scratch: MemoryRange; readonly output: MemoryRange } | null;
}

/** An encoded row group, possibly in lent memory. `free` returns that memory. */
export interface LentRowGroup {
  readonly encoded: EncodedRowGroup;
  free(): void;
}

/** Encodes a row group on the current thread. */
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

/** Replaces the lent pages by views of their memory. */
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

const encodeTask = taskIn(import.meta.url, { work }, true);

/** Sent in place of a page in lent memory. */
const noPage: RecordBatch = { length: 0, columns: [] };

/** Estimated compressed size, as a share of the rows' size. Chunks that do not fit are allocated on the heap. */
const outputShare = 1 / 2;
const outputFieldBytes = 64 * 1024;

/**
 * Encodes a row group on a thread of the pool; a small one on the current thread. Pages on the heap must not be shared, because their
 * memory is moved to the thread.
 *
 * @param lent for each page its range of lent memory; null for a page on the heap
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

/** Encodes a row group ahead and writes it when its turn comes. */
export async function encodeInTurn(
  encoding: Pending[],
  depth: number,
  encode: () => Promise<LentRowGroup>,
  write: (encoded: EncodedRowGroup) => Promise<void>,
): Promise<void> {
  await startInOrder(
    encoding,
    depth,
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
  return (
    Math.ceil(gatheredBatchBytesMax(slices, schema) * outputShare) + schema.fields.length * outputFieldBytes
  );
}
