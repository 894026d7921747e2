import {
  leaseMemory,
  type LoadBatch,
  type MemoryLease,
  unpackBatch,
  type WorkerPool,
} from '../../engine/index.js';
import { decodeOnPool, type DecodedLines, type DecodeJob, type SharedLines } from './decode-task.js';

/** The result of decoding lines. */
export interface DecodedBatch extends Omit<DecodedLines, 'bytes' | 'packed'> {
  /** The bytes with the lines; another object than before where they were transferred. */
  readonly bytes: Uint8Array;
  /** The records; null for none. */
  readonly batch: LoadBatch | null;
}

/**
 * Size of the kernels' working memory: a base, a part per field, and the maximum. With less memory, kernels process fewer
 * lines at a time.
 */
const scratchBytes = 8 * 1024 * 1024;
const scratchFieldBytes = 256 * 1024;
const scratchBytesMax = 64 * 1024 * 1024;
/** Memory for the records: columns take little more than their text, but their arrays grow in steps. What does not fit goes to the heap. */
const recordsShare = 2.5;
const numbersBytes = 1024 * 1024;

/** The shared memory of one job. */
interface JobMemory {
  readonly lines: SharedLines;
  readonly scratch: MemoryLease;
  readonly records: MemoryLease;
}

/** Allocates the shared memory of one job; null where there is not enough. */
function leaseJobMemory(text: MemoryLease, textBytes: number, fields: number): JobMemory | null {
  const scratch = leaseMemory(Math.min(scratchBytesMax, scratchBytes + fields * scratchFieldBytes));
  const records = leaseMemory(Math.ceil(textBytes * recordsShare) + numbersBytes);
  if (scratch !== null && records !== null) {
    const lines = { text: text.range, scratch: scratch.range, records: records.range };
    return { lines, scratch, records };
  }
  scratch?.free();
  records?.free();
  return null;
}

/**
 * Decodes lines of `bytes` on a thread of the pool; without a pool, on this thread. Where `bytes` is shared memory (`lent`),
 * the records are in shared memory too, and the batch owns the lease. Otherwise the bytes are transferred to the thread and
 * back.
 */
export async function decodeLines(
  pool: WorkerPool | null,
  job: Omit<DecodeJob, 'lines'>,
  bytes: Uint8Array,
  lent: MemoryLease | null,
): Promise<DecodedBatch> {
  const { settings, ranges } = job;
  const end = ranges.at(-1)?.end ?? 0;
  const textBytes = end - (ranges[0]?.start ?? 0);
  const shared =
    pool === null || lent === null
      ? null
      : leaseJobMemory(lent, textBytes, settings.definition.schema.fields.length);
  if (shared === null) {
    // Shared memory can't be transferred: transfer a copy.
    const own = pool === null || lent === null ? bytes : bytes.slice(0, end);
    const decoded = await decodeOnPool(pool, { ...job, lines: { bytes: own } });
    return {
      ...decoded,
      bytes: own === bytes ? (decoded.bytes ?? own) : bytes,
      batch: batchOf(decoded),
    };
  }
  const { lines, scratch, records } = shared;
  try {
    const decoded = await decodeOnPool(pool, { ...job, lines });
    return { ...decoded, bytes, batch: batchOf(decoded, records) };
  } catch (error) {
    records.free();
    throw error;
  } finally {
    scratch.free();
  }
}

/** The records as a batch. Where they are in `lent`, the batch takes over that lease; otherwise the lease is freed. */
function batchOf({ packed }: Pick<DecodedLines, 'packed'>, lent?: MemoryLease): LoadBatch | null {
  if (typeof packed === 'number' && lent !== undefined) {
    lent.shrink(packed);
    return { ...unpackBatch(lent.bytes, 0), lease: lent };
  }
  lent?.free();
  return packed instanceof Uint8Array ? unpackBatch(packed, 0) : null;
}
