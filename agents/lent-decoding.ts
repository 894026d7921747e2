import { leaseMemory, type MemoryLease } from '../engine/kernels/memory-lease.js';
import { unpackBatch } from '../engine/packed-batch.js';
import type { LoadBatch } from '../engine/storage/commit.js';
import type { WorkerPool } from '../engine/workers/worker-pool.js';
import { decodeOnPool, type DecodedLines, type DecodeJob, type SharedLines } from './decode-task.js';

/** What became of lines, with their records as a batch to store. */
export interface LinesResult extends Omit<DecodedLines, 'packed'> {
  readonly bytes: Uint8Array;
  readonly batch: LoadBatch | null;
}

/** What kernels want beside the lines: with less they take fewer lines at a time. */
const scratchBytes = 8 * 1024 * 1024;
const scratchFieldBytes = 256 * 1024;
const scratchBytesMax = 64 * 1024 * 1024;
/** Columns take hardly more than the text they were in; what does not fit goes to the heap. */
const targetShare = 1.25;
/** They are built in arrays that grow. */
const arraysShare = 2.5;
const numbersBytes = 1024 * 1024;

/** The memory of one job. */
class JobMemory {
  private readonly leases: MemoryLease[] = [];

  private lease(sizeBytes: number): MemoryLease | null {
    const lease = leaseMemory(sizeBytes);
    if (lease !== null) this.leases.push(lease);
    return lease;
  }

  /** Null where there is not enough. */
  lend(
    text: MemoryLease,
    textBytes: number,
    fields: number,
  ): { lines: SharedLines; target: MemoryLease } | null {
    const scratch = this.lease(Math.min(scratchBytesMax, scratchBytes + fields * scratchFieldBytes));
    const arrays = this.lease(Math.ceil(textBytes * arraysShare) + numbersBytes);
    const target = leaseMemory(Math.ceil(textBytes * targetShare) + numbersBytes);
    if (scratch !== null && arrays !== null && target !== null) {
      const lines = { text: text.range, scratch: scratch.range, arrays: arrays.range, target: target.range };
      return { lines, target };
    }
    target?.free();
    return null;
  }

  free(): void {
    for (const lease of this.leases) lease.free();
  }
}

/**
 * Decodes lines of `bytes` on a thread of the pool, without a pool here. Where `lent` says that threads see the bytes, their records
 * stay in such memory too, which the batch then brings with it; else the bytes move to the thread and back.
 */
export async function decodeLines(
  pool: WorkerPool | null,
  job: Omit<DecodeJob, 'lines'>,
  bytes: Uint8Array,
  lent: MemoryLease | null,
): Promise<LinesResult> {
  const memory = new JobMemory();
  const { length } = job.settings.definition.schema.fields;
  const shared = pool === null || lent === null ? null : memory.lend(lent, job.end - job.start, length);
  if (shared === null) {
    const own = lent === null ? bytes : bytes.slice(0, job.end);
    const decoded = await decodeOnPool(pool, { ...job, lines: { bytes: own } });
    return { ...decoded, bytes: lent === null ? (decoded.bytes ?? own) : bytes, batch: batchOf(decoded) };
  }
  const { lines, target } = shared;
  try {
    const decoded = await decodeOnPool(pool, { ...job, lines });
    return { ...decoded, bytes, batch: batchOf(decoded, target) };
  } catch (error) {
    target.free();
    throw error;
  } finally {
    memory.free();
  }
}

/** The records, which hold on to `target` where they are there. */
function batchOf({ packed }: DecodedLines, target?: MemoryLease): LoadBatch | null {
  if (typeof packed === 'number' && target !== undefined) {
    target.shrink(packed);
    return { ...unpackBatch(target.bytes, 0), lease: target };
  }
  target?.free();
  return packed instanceof Uint8Array ? unpackBatch(packed, 0) : null;
}
