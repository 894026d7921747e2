import {
  BatchBuilder,
  buffersOf,
  builtModule,
  type Finished,
  foreignMemory,
  headerBytes,
  RangeArrays,
  type Task,
  type WorkerPool,
  workingOn,
} from '../../engine/index.js';
import type { LinesPlace } from './decode-task.js';
import type { AgentDefinition } from '../definition/definition.js';
import { RejectedLines } from './frame-decoder.js';
import { createRecordDecoder } from '../decode/record-decoder.js';
import type { StopFlag } from '../decode/stop-flag.js';
import type { ValueCounters } from '../decode/value-writer.js';
import type { RecordDecoder } from '../decode/line-decoder.js';

/** What the lines of one agent are decoded with. */
export interface CollectSettings {
  /** Tells the settings of this process apart. */
  readonly key: number;
  readonly definition: AgentDefinition;
  readonly timezone: string;
  /** Once it is set, jobs end with `cancelled`. */
  readonly stop?: StopFlag | undefined;
}

let settingsMade = 0;

/** Settings with a key of their own. */
export function collectSettings(
  definition: AgentDefinition,
  timezone: string,
  stop?: StopFlag,
): CollectSettings {
  return { key: settingsMade++, definition, timezone, stop };
}

/** Whole lines of one file at bytes[start, end); the last may lack its end. */
export interface CollectRange {
  readonly start: number;
  readonly end: number;
  /** Fields that the file's name gives. */
  readonly captures: ReadonlyMap<string, string>;
  /** They are the beginning of the content, where a byte order mark may stand. */
  readonly atBeginning: boolean;
  /** They begin inside a line whose beginning is stored. */
  readonly continuesLine: boolean;
  /** They were written no later than that, for times without a year. */
  readonly writtenMs: number;
}

export interface CollectJob {
  readonly settings: CollectSettings;
  readonly lines: LinesPlace;
  readonly ranges: readonly CollectRange[];
}

/** What became of a range. */
export interface CollectedRange {
  readonly rows: number;
  /** Position behind the last line taken. */
  readonly reached: number;
  readonly rejected: Pick<RejectedLines, 'reasons' | 'starts' | 'ends'>;
}

/** What became of the lines: at most a row group of them. Ranges from the first one on that was not done are left out. */
export interface CollectedLines extends ValueCounters {
  /** Those that moved to the thread, which come back. */
  readonly bytes: Uint8Array | null;
  /** Records, packed: so many bytes of what was lent for them, or bytes of their own; null for none. */
  readonly packed: number | Uint8Array | null;
  readonly ranges: readonly CollectedRange[];
}

/** One agent's decoders, by the names of the captures: hardly more than one. */
interface AgentDecoders {
  readonly builder: BatchBuilder;
  /** Records of the job before. */
  rows: number;
  readonly byNames: Map<string, RecordDecoder>;
}

/** Agents whose decoders a thread keeps, with their patterns compiled; the one longest unused goes. */
const agentsMax = 64;
const agents = new Map<number, AgentDecoders>();

function decodersOf({ key, definition }: CollectSettings): AgentDecoders {
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
  { definition, timezone, stop }: CollectSettings,
  { captures, writtenMs }: CollectRange,
): RecordDecoder {
  const names = [...captures.keys()].join(' ');
  const written = { byMs: writtenMs };
  let decoder = byNames.get(names);
  if (decoder === undefined) {
    decoder = createRecordDecoder(definition, { captures, timezone, written, stop });
    byNames.set(names, decoder);
  }
  decoder.useCaptures(captures);
  decoder.useWritten(written);
  return decoder;
}

const byteOrderMark = [0xef, 0xbb, 0xbf];

/** Where the lines of a range begin: behind a byte order mark, and behind the rest of a line, which is rejected. */
function firstLine(bytes: Uint8Array, range: CollectRange, rejected: RejectedLines): number {
  const { start, end, atBeginning, continuesLine } = range;
  if (continuesLine) return rejected.addRest(bytes, start, end);
  const hasMark =
    atBeginning && byteOrderMark.every((byte, i) => start + i < end && bytes[start + i] === byte);
  return hasMark ? start + byteOrderMark.length : start;
}

/** Decodes lines of several files into one batch. Throws `invalid` for a definition that makes no sense. */
export function work(job: CollectJob): Finished<CollectedLines> {
  const decoders = decodersOf(job.settings);
  try {
    const result = decodeWhere(job, decoders);
    const moved = [result.bytes, result.packed].filter((bytes) => bytes instanceof Uint8Array);
    return { result, transfer: buffersOf(moved) };
  } catch (error) {
    // What the builder holds by now belongs to no other job.
    agents.delete(job.settings.key);
    throw error;
  }
}

/** Decodes the lines where they are, into memory that was lent with them or into new one. */
function decodeWhere(job: CollectJob, decoders: AgentDecoders): CollectedLines {
  const { lines } = job;
  if ('bytes' in lines) return { ...decode(job, lines.bytes, decoders), bytes: lines.bytes };
  const { text, scratch, records } = lines;
  const memory = foreignMemory(text);
  const bytes = memory.bytesAt(text);
  const place = { address: scratch.address, bytes: scratch.sizeBytes };
  const space = new RangeArrays(memory.bytesAt(records));
  const { builder, rows } = decoders;
  space.bytes(headerBytes(builder.schema.fields.length));
  return workingOn(memory, place, () =>
    builder.within(space, rows, () => decode(job, bytes, decoders, space)),
  );
}

/** Decodes the job's lines, which are in `bytes`; within `space`, where the builder builds in it. */
function decode(
  { settings, ranges }: CollectJob,
  bytes: Uint8Array,
  decoders: AgentDecoders,
  space?: RangeArrays,
): CollectedLines {
  const { builder } = decoders;
  const done: CollectedRange[] = [];
  const counters = { unreadableValues: 0, replacedBytes: 0 };
  for (const range of ranges) {
    if (builder.full) break;
    const decoder = decoderFor(decoders, settings, range);
    const before = { ...decoder.counters };
    const rowsBefore = builder.rows;
    const rejected = new RejectedLines();
    let reached = firstLine(bytes, range, rejected);
    if (reached < range.end) reached = decoder.decode(bytes, reached, range.end, builder, rejected.add);
    const { reasons, starts, ends } = rejected;
    done.push({ rows: builder.rows - rowsBefore, reached, rejected: { reasons, starts, ends } });
    counters.unreadableValues += decoder.counters.unreadableValues - before.unreadableValues;
    counters.replacedBytes += decoder.counters.replacedBytes - before.replacedBytes;
  }
  decoders.rows = builder.rows;
  return { bytes: null, packed: builder.finishPacked(space), ranges: done, ...counters };
}

const collectTask: Task<CollectJob, CollectedLines> = { module: builtModule(import.meta.url), work };

/** Decodes lines on a thread of the pool, to which bytes of their own move and from which they come back. */
export function collectOnPool(pool: WorkerPool, job: CollectJob): Promise<CollectedLines> {
  const { lines } = job;
  return pool.run(collectTask, job, 'bytes' in lines ? buffersOf([lines.bytes]) : []);
}
