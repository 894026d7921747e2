import {
  BatchBuilder,
  buffersOf,
  builtModule,
  type Finished,
  foreignMemory,
  headerBytes,
  type MemoryRange,
  RangeArena,
  type Task,
  type WorkerPool,
  workingOn,
} from '../../engine/index.js';
import type { AgentDefinition } from '../definition/definition.js';
import type { RecordDecoder } from '../decode/line-decoder.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import type { StopFlag } from '../decode/stop-flag.js';
import { joinUnreadable, type UnreadableField, type ValueCounters } from '../decode/value-counters.js';
import type { Written } from '../times/written.js';
import { decodeRange, type DecodedRange, type LineRange } from './line-range.js';

/** How the lines of one agent are decoded. */
export interface DecodeSettings {
  /** Names the definition and the zone in this process: a thread keeps the decoders that it made for them. */
  readonly key: string;
  readonly definition: AgentDefinition;
  /** Zone of times that carry none. */
  readonly timezone: string;
  /** Once it is set, jobs end with `cancelled`. */
  readonly stop?: StopFlag | undefined;
}

const definitionNumbers = new WeakMap<AgentDefinition, number>();
let definitionsSeen = 0;

/** Settings for the lines of an agent. */
export function decodeSettings(
  definition: AgentDefinition,
  timezone: string,
  stop?: StopFlag,
): DecodeSettings {
  const number = definitionNumbers.get(definition) ?? definitionsSeen++;
  definitionNumbers.set(definition, number);
  return { key: `${number} ${timezone}`, definition, timezone, stop };
}

export interface DecodeJob {
  readonly settings: DecodeSettings;
  readonly lines: LinesPlace;
  /** Ranges of those bytes, decoded in this order. */
  readonly ranges: readonly LineRange[];
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

/** What became of the lines: at most a row group of records. */
export interface DecodedLines extends ValueCounters {
  /** The bytes that moved to the thread, which come back; null where none did. */
  readonly bytes: Uint8Array | null;
  /** The records, packed: their length in the memory lent for them, or bytes of their own; null for no records. */
  readonly packed: number | Uint8Array | null;
  /** Of each range that was begun before the batch was full. */
  readonly ranges: readonly DecodedRange[];
  /** The fields that values are of which did not read. */
  readonly unreadable: readonly UnreadableField[];
  /** Where the years stand behind the last line, for what is `Written` next. */
  readonly years: Written['years'];
}

/** The decoders of one definition, which build the same batch. */
interface AgentDecoders {
  readonly builder: BatchBuilder;
  /** Records of the job before. */
  rows: number;
  /** By the names of the captures of the file names: hardly more than one. */
  readonly byNames: Map<string, RecordDecoder>;
}

/** Definitions whose decoders a thread keeps, with their patterns compiled; the one longest unused goes. */
const agentsMax = 64;
const agents = new Map<string, AgentDecoders>();

function decodersOf({ key, definition }: DecodeSettings): AgentDecoders {
  const known = agents.get(key) ?? {
    builder: new BatchBuilder(definition.schema),
    rows: 0,
    byNames: new Map<string, RecordDecoder>(),
  };
  agents.delete(key);
  agents.set(key, known);
  if (agents.size > agentsMax) agents.delete(agents.keys().next().value!);
  return known;
}

function decoderFor(
  { byNames }: AgentDecoders,
  { definition, timezone, stop }: DecodeSettings,
  { captures, written }: LineRange,
): RecordDecoder {
  const names = [...captures.keys()].join(' ');
  const origin = { captures, written, stop };
  let decoder = byNames.get(names);
  if (decoder === undefined) {
    decoder = createRecordDecoder(definition, { timezone, ...origin });
    byNames.set(names, decoder);
  }
  decoder.use(origin);
  return decoder;
}

/** Decodes lines into one batch. Throws `invalid` for a definition that makes no sense. */
export function work(job: DecodeJob): Finished<DecodedLines> {
  const decoders = decodersOf(job.settings);
  try {
    const result = decodeInPlace(job, decoders);
    const moved = [result.bytes, result.packed].filter((bytes) => bytes instanceof Uint8Array);
    return { result, transfer: buffersOf(moved) };
  } catch (error) {
    // The builder holds a part of this job's records.
    agents.delete(job.settings.key);
    throw error;
  }
}

/** Decodes the lines where they are, into memory that was lent with them or into new one. */
function decodeInPlace(job: DecodeJob, decoders: AgentDecoders): DecodedLines {
  const { lines } = job;
  if ('bytes' in lines) return { ...decode(job, lines.bytes, decoders), bytes: lines.bytes };
  const { text, scratch, records } = lines;
  const memory = foreignMemory(text);
  const bytes = memory.bytesAt(text);
  const place = { address: scratch.address, bytes: scratch.sizeBytes };
  const space = new RangeArena(memory.bytesAt(records));
  const { builder, rows } = decoders;
  space.take(headerBytes(builder.schema.fields.length));
  return workingOn(memory, place, () =>
    builder.within(space.take, rows, () => decode(job, bytes, decoders, space)),
  );
}

/** Decodes the job's lines, which are in `bytes`; within `space`, where the builder builds in it. */
function decode(
  { settings, ranges }: DecodeJob,
  bytes: Uint8Array,
  decoders: AgentDecoders,
  space?: RangeArena,
): DecodedLines {
  const { builder } = decoders;
  const done: DecodedRange[] = [];
  const counters = { unreadableValues: 0, replacedBytes: 0 };
  const unreadable = new Map<number, UnreadableField>();
  let years: Written['years'];
  for (const range of ranges) {
    if (builder.full) break;
    const decoder = decoderFor(decoders, settings, range);
    const before: ValueCounters = { ...decoder.counters };
    done.push(decodeRange(decoder, bytes, range, builder));
    ({ years } = decoder);
    counters.unreadableValues += decoder.counters.unreadableValues - before.unreadableValues;
    counters.replacedBytes += decoder.counters.replacedBytes - before.replacedBytes;
    joinUnreadable(unreadable, decoder.counters.takeFields());
  }
  decoders.rows = builder.rows;
  const packed = builder.finishPacked(space);
  return { bytes: null, packed, ranges: done, years, unreadable: [...unreadable.values()], ...counters };
}

const decodeTask: Task<DecodeJob, DecodedLines> = { module: builtModule(import.meta.url), work };

/** Decodes lines on a thread of the pool, to which bytes of their own move and from which they come back; without one, here. */
export async function decodeOnPool(pool: WorkerPool | null, job: DecodeJob): Promise<DecodedLines> {
  const { lines } = job;
  if (pool === null) return work(job).result;
  return pool.run(decodeTask, job, 'bytes' in lines ? buffersOf([lines.bytes]) : []);
}
