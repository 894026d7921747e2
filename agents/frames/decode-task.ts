import {
  BatchBuilder,
  buffersOf,
  builtModule,
  type Finished,
  foreignMemory,
  headerBytes,
  type MemoryRange,
  RangeArrays,
  type Task,
  type WorkerPool,
  workingOn,
} from '../../engine/index.js';
import type { AgentDefinition } from '../definition/definition.js';
import { RejectedLines } from './frame-decoder.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import type { StopFlag } from '../decode/stop-flag.js';
import type { ValueCounters } from '../decode/value-writer.js';
import type { Written } from '../times/written.js';
import type { RecordDecoder } from '../decode/line-decoder.js';

/** What the lines of one source are decoded with. */
export interface DecodeSettings {
  /** Tells the sources of this process apart. */
  readonly key: number;
  readonly definition: AgentDefinition;
  readonly captures: ReadonlyMap<string, string>;
  readonly timezone: string;
  /** Once it is set, jobs end with `cancelled`. */
  readonly stop?: StopFlag | undefined;
}

let settingsMade = 0;

/** Settings with a key of their own. */
export function decodeSettings(
  definition: AgentDefinition,
  captures: ReadonlyMap<string, string>,
  timezone: string,
): DecodeSettings {
  return { key: settingsMade++, definition, captures, timezone };
}

export interface DecodeJob {
  readonly settings: DecodeSettings;
  readonly written: Written;
  readonly lines: LinesPlace;
  /** Whole lines at bytes[start, end) of them; the last may lack its end. */
  readonly start: number;
  readonly end: number;
}

/** Bytes that move to the thread, or that both threads see. */
export type LinesPlace = { readonly bytes: Uint8Array } | SharedLines;

export interface SharedLines {
  readonly text: MemoryRange;
  /** What kernels may work in. */
  readonly scratch: MemoryRange;
  /** Where the records are to be. */
  readonly records: MemoryRange;
}

/** What became of the lines: at most a row group of them. */
export interface DecodedLines extends ValueCounters {
  /** Those that moved to the thread, which come back. */
  readonly bytes: Uint8Array | null;
  /** Position behind the last line taken; the lines from there on need another job. */
  readonly reached: number;
  /** Records, packed: so many bytes of what was lent for them, or bytes of their own; null for none. */
  readonly packed: number | Uint8Array | null;
  readonly rejected: Pick<RejectedLines, 'reasons' | 'starts' | 'ends'>;
  /** Where the years stand behind the last line, for what is `Written` next. */
  readonly years: NonNullable<Written['years']>;
}

/** A decoder with its pattern compiled, kept for the next lines of its source. */
interface OpenDecoder {
  readonly decoder: RecordDecoder;
  readonly builder: BatchBuilder;
  /** Records of the batch before. */
  rows: number;
}

/** Sources are read one after another, so that few decoders are in use at once. */
const decodersMax = 4;
const decoders = new Map<number, OpenDecoder>();

function decoderOf({ settings, written }: DecodeJob): OpenDecoder {
  const { key, definition, captures, timezone, stop } = settings;
  const known = decoders.get(key);
  if (known !== undefined) return known;
  const decoder = createRecordDecoder(definition, { captures, timezone, written, stop });
  const opened: OpenDecoder = { decoder, builder: new BatchBuilder(definition.schema), rows: 0 };
  decoders.set(key, opened);
  const oldest = decoders.keys().next().value!;
  if (decoders.size > decodersMax) decoders.delete(oldest);
  return opened;
}

/** Decodes lines into one batch. Throws `invalid` for a definition that makes no sense. */
export function work(job: DecodeJob): Finished<DecodedLines> {
  const { lines } = job;
  if ('bytes' in lines) {
    const result = decode(job, lines.bytes);
    const { packed } = result;
    const transfer = buffersOf(packed instanceof Uint8Array ? [lines.bytes, packed] : [lines.bytes]);
    return { result: { ...result, bytes: lines.bytes }, transfer };
  }
  const { text, scratch, records } = lines;
  const memory = foreignMemory(text);
  const bytes = memory.bytesAt(text);
  const opened = decoderOf(job);
  const place = { address: scratch.address, bytes: scratch.sizeBytes };
  const space = new RangeArrays(memory.bytesAt(records));
  space.bytes(headerBytes(opened.builder.schema.fields.length));
  const result = workingOn(memory, place, () =>
    opened.builder.within(space, opened.rows, () => decode(job, bytes, space)),
  );
  return { result, transfer: buffersOf(result.packed instanceof Uint8Array ? [result.packed] : []) };
}

/** Decodes the job's lines, which are in `bytes`; within `space`, where the builder builds in it. */
function decode(job: DecodeJob, bytes: Uint8Array, space?: RangeArrays): DecodedLines {
  const { written, start, end } = job;
  const opened = decoderOf(job);
  const { decoder, builder } = opened;
  decoder.useWritten(written);
  const before = { ...decoder.counters };
  const rejected = new RejectedLines();
  let reached: number;
  try {
    reached = decoder.decode(bytes, start, end, builder, rejected.add);
  } catch (error) {
    // What the builder holds by now belongs to no other job.
    decoders.delete(job.settings.key);
    throw error;
  }
  opened.rows = builder.rows;
  const packed = builder.finishPacked(space);
  const { reasons, starts, ends } = rejected;
  return {
    bytes: null,
    reached,
    packed,
    rejected: { reasons, starts, ends },
    years: decoder.years,
    unreadableValues: decoder.counters.unreadableValues - before.unreadableValues,
    replacedBytes: decoder.counters.replacedBytes - before.replacedBytes,
  };
}

const decodeTask: Task<DecodeJob, DecodedLines> = { module: builtModule(import.meta.url), work };

/** Decodes lines on a thread of the pool, to which bytes of their own move and from which they come back; without one, here. */
export async function decodeOnPool(pool: WorkerPool | null, job: DecodeJob): Promise<DecodedLines> {
  const { lines } = job;
  if (pool === null) return work(job).result;
  return pool.run(decodeTask, job, 'bytes' in lines ? buffersOf([lines.bytes]) : []);
}
