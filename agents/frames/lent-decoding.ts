import {
  leaseMemory,
  type LoadBatch,
  type MemoryLease,
  unpackBatch,
  type WorkerPool,
} from '../../engine/index.js';
import {
  decodeOnPool,
  type DecodedLines,
  type DecodeJob,
  type LinesPlace,
  type SharedLines,
} from './decode-task.js';

/** What became of lines, with their records as a batch to store. */
export type LinesResult = WithBatch<DecodedLines>;

/** What a task says of lines that it decoded: `packed` are its records, as `DecodedLines` has them. */
type Decoded = Pick<DecodedLines, 'bytes' | 'packed'>;

export type WithBatch<D extends Decoded> = Omit<D, 'bytes' | 'packed'> & {
  readonly bytes: Uint8Array;
  readonly batch: LoadBatch | null;
};

/** Where lines are that a task decodes. */
export interface LinesMemory {
  readonly bytes: Uint8Array;
  /** Where threads see them; null for bytes that have to move there. */
  readonly lent: MemoryLease | null;
  /** The lines are bytes[start, end). */
  readonly start: number;
  readonly end: number;
  /** Fields of their records. */
  readonly fields: number;
}

/** What kernels want beside the lines: with less they take fewer lines at a time. */
const scratchBytes = 8 * 1024 * 1024;
const scratchFieldBytes = 256 * 1024;
const scratchBytesMax = 64 * 1024 * 1024;
/** Columns take hardly more than the text they were in, but are built in arrays that grow; what does not fit goes to the heap. */
const recordsShare = 2.5;
const numbersBytes = 1024 * 1024;

/** The memory of one job. */
interface JobMemory {
  readonly lines: SharedLines;
  readonly scratch: MemoryLease;
  readonly records: MemoryLease;
}

/** Null where there is not enough. */
function lend(text: MemoryLease, textBytes: number, fields: number): JobMemory | null {
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
 * Decodes lines of `bytes` on a thread of the pool, without a pool here. Where `lent` says that threads see the bytes, their records
 * stay in such memory too, which the batch then brings with it; else the bytes move to the thread and back.
 */
export function decodeLines(
  pool: WorkerPool | null,
  job: Omit<DecodeJob, 'lines'>,
  bytes: Uint8Array,
  lent: MemoryLease | null,
): Promise<LinesResult> {
  const { start, end, settings } = job;
  const fields = settings.definition.schema.fields.length;
  const memory = { bytes, lent: pool === null ? null : lent, start, end, fields };
  return decodeIn(memory, (lines) => decodeOnPool(pool, { ...job, lines }));
}

/** As `decodeLines`, by any task: `decode` has it done for lines at the place that it is told. */
export async function decodeIn<D extends Decoded>(
  { bytes, lent, start, end, fields }: LinesMemory,
  decode: (lines: LinesPlace) => Promise<D>,
): Promise<WithBatch<D>> {
  const shared = lent === null ? null : lend(lent, end - start, fields);
  if (shared === null) {
    const own = lent === null ? bytes : bytes.slice(0, end);
    const decoded = await decode({ bytes: own });
    return { ...decoded, bytes: lent === null ? (decoded.bytes ?? own) : bytes, batch: batchOf(decoded) };
  }
  const { lines, scratch, records } = shared;
  try {
    const decoded = await decode(lines);
    return { ...decoded, bytes, batch: batchOf(decoded, records) };
  } catch (error) {
    records.free();
    throw error;
  } finally {
    scratch.free();
  }
}

/** The records, which hold on to `lent` where they are there. */
export function batchOf({ packed }: Decoded, lent?: MemoryLease): LoadBatch | null {
  if (typeof packed === 'number' && lent !== undefined) {
    lent.shrink(packed);
    return { ...unpackBatch(lent.bytes, 0), lease: lent };
  }
  lent?.free();
  return packed instanceof Uint8Array ? unpackBatch(packed, 0) : null;
}
