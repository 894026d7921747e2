import { BatchBuilder } from '../engine/batch-builder.js';
import { buffersOf, builtModule, type Finished, type Task } from '../engine/workers/task.js';
import type { WorkerPool } from '../engine/workers/worker-pool.js';
import type { AgentDefinition } from './definition.js';
import { RejectedLines } from './frame-decoder.js';
import { createRecordDecoder, type RecordDecoder } from './record-decoder.js';
import type { ValueCounters } from './value-writer.js';

/** What the lines of one source are decoded with. */
export interface DecodeSettings {
  /** Tells the sources of this process apart. */
  readonly key: number;
  readonly definition: AgentDefinition;
  readonly captures: ReadonlyMap<string, string>;
  readonly timezone: string;
}

export interface DecodeJob {
  readonly settings: DecodeSettings;
  /** The clock, in milliseconds. */
  readonly nowMs: number;
  /** Whole lines at bytes[start, end); the last may lack its end. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** What became of the lines: at most a row group of them. */
export interface DecodedLines extends ValueCounters {
  /** Those of the job, which come back. */
  readonly bytes: Uint8Array;
  /** Position behind the last line taken; the lines from there on need another job. */
  readonly reached: number;
  /** Records, packed; null for none. */
  readonly packed: Uint8Array | null;
  readonly rejected: Pick<RejectedLines, 'reasons' | 'starts' | 'ends'>;
}

/** A decoder with its pattern compiled, kept for the next lines of its source. */
interface OpenDecoder {
  readonly decoder: RecordDecoder;
  readonly builder: BatchBuilder;
  nowMs: number;
}

/** Sources are read one after another, so that few decoders are in use at once. */
const decodersMax = 4;
const decoders = new Map<number, OpenDecoder>();

function decoderOf({ key, definition, captures, timezone }: DecodeSettings): OpenDecoder {
  const known = decoders.get(key);
  if (known !== undefined) return known;
  const decoder = createRecordDecoder(definition, { captures, timezone, now: () => opened.nowMs });
  const opened: OpenDecoder = { decoder, builder: new BatchBuilder(definition.schema), nowMs: 0 };
  decoders.set(key, opened);
  const oldest = decoders.keys().next().value!;
  if (decoders.size > decodersMax) decoders.delete(oldest);
  return opened;
}

/** Decodes lines into one batch. Throws `invalid` for a definition that makes no sense. */
export function work({ settings, nowMs, bytes, start, end }: DecodeJob): Finished<DecodedLines> {
  const opened = decoderOf(settings);
  opened.nowMs = nowMs;
  const { decoder, builder } = opened;
  const before = { ...decoder.counters };
  const rejected = new RejectedLines();
  const reached = decoder.decode(bytes, start, end, builder, rejected.add);
  const packed = builder.finishPacked();
  const { reasons, starts, ends } = rejected;
  const result: DecodedLines = {
    bytes,
    reached,
    packed,
    rejected: { reasons, starts, ends },
    unreadableValues: decoder.counters.unreadableValues - before.unreadableValues,
    replacedBytes: decoder.counters.replacedBytes - before.replacedBytes,
  };
  return { result, transfer: buffersOf(packed === null ? [bytes] : [bytes, packed]) };
}

const decodeTask: Task<DecodeJob, DecodedLines> = { module: builtModule(import.meta.url), work };

/** Decodes lines on a thread of the pool, to which their buffer moves and from which it comes back; without one, here. */
export async function decodeOnPool(pool: WorkerPool | null, job: DecodeJob): Promise<DecodedLines> {
  return pool === null ? work(job).result : pool.run(decodeTask, job, buffersOf([job.bytes]));
}
