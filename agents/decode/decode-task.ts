import {
  BatchBuilder,
  buffersOf,
  taskIn,
  type Finished,
  foreignMemory,
  headerBytes,
  type MemoryRange,
  RangeArena,
  type WorkerPool,
  workingOn,
  assert,
} from '../../engine/index.js';
import type { AgentDefinition, Encoding } from '../definition/definition.js';
import type { RecordDecoder, LinesOrigin } from './line-decoder.js';
import { createRecordDecoder } from './record-decoder.js';
import type { Reading } from '../sources/source-position.js';
import type { StopFlag } from './stop-flag.js';
import {
  joinUnreadable,
  noValueCounts,
  type UnreadableField,
  valueCountNames,
  type ValueCounters,
} from './value-writer.js';
import type { Written } from '../../engine/times/timestamp.js';
import { lineEndIn, reencoded } from './encodings.js';
import { rowEnd } from './table-headers.js';
import { continuationReason, RejectedLines, type RejectedPlaces } from './rejected-lines.js';

/** How the lines of one agent are decoded. */
export interface DecodeSettings {
  /** Identifies the definition and the time zone within this process: threads keep their decoders by it. */
  readonly key: string;
  readonly definition: AgentDefinition;
  /** Time zone of times that have none. */
  readonly timezone: string;
  /** Once the flag is set, jobs fail with `cancelled`. */
  readonly stop?: StopFlag | undefined;
}

const definitionNumbers = new WeakMap<AgentDefinition, number>();
let definitionsSeen = 0;

/** Makes the settings for the lines of an agent. */
export function decodeSettings(
  definition: AgentDefinition,
  timezone: string,
  stop?: StopFlag,
): DecodeSettings {
  const number = definitionNumbers.get(definition) ?? definitionsSeen++;
  definitionNumbers.set(definition, number);
  return { key: `${number} ${timezone}`, definition, timezone, stop };
}

/** A job of decoding lines. */
export interface DecodeJob {
  readonly settings: DecodeSettings;
  readonly lines: LinesPlace;
  /** Ranges of these bytes, decoded in this order. */
  readonly ranges: readonly LineRange[];
}

/** Bytes that are transferred to the thread, or memory that both threads share. */
export type LinesPlace = { readonly bytes: Uint8Array } | SharedLines;

/** Shared memory for decoding lines. */
export interface SharedLines {
  readonly text: MemoryRange;
  /** Working memory of the kernels. */
  readonly scratch: MemoryRange;
  /** Memory for the records. */
  readonly records: MemoryRange;
}

/** The result of decoding: at most a row group of records. */
export interface DecodedLines extends ValueCounters {
  /** The bytes that were transferred to the thread, transferred back; null for shared memory. */
  readonly bytes: Uint8Array | null;
  /** The packed records: their length in the shared memory for them, or their bytes where these are on the heap; null for no records. */
  readonly packed: number | Uint8Array | null;
  /** For each range that was begun before the batch became full. */
  readonly ranges: readonly DecodedRange[];
  /** The rows that are no records of their format: they get the time by which they are placed. */
  readonly untimed: readonly number[];
  /** The fields with values that could not be read. */
  readonly unreadable: readonly UnreadableField[];
  /** State of the guessing of years after the last line, to be passed on in the `Written` of the following lines. */
  readonly years: Written['years'];
}

/** The decoders of one definition, which share a batch builder. */
interface AgentDecoders {
  readonly builder: BatchBuilder;
  /** Number of records of the previous job. */
  rows: number;
  /** By the names of the file name's captures; usually there is just one. */
  readonly byNames: Map<string, RecordDecoder>;
}

/** Limit on definitions whose decoders, with compiled patterns, a thread keeps; the least recently used goes. */
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
  { captures, written, reading, encoding }: LineRange,
): RecordDecoder {
  const names = [encoding, ...captures.keys()].join(' ');
  const origin = { captures, written, reading, stop };
  let decoder = byNames.get(names);
  if (decoder === undefined) {
    decoder = createRecordDecoder(definition, { timezone, encoding, ...origin });
    byNames.set(names, decoder);
  }
  decoder.use(origin);
  return decoder;
}

/** Runs on a worker thread: decodes lines into one batch. Throws `invalid` for a definition that is not valid. */
export function work(job: DecodeJob): Finished<DecodedLines> {
  const decoders = decodersOf(job.settings);
  try {
    const result = decodeInPlace(job, decoders);
    const moved = [result.bytes, result.packed].filter((bytes) => bytes instanceof Uint8Array);
    return { result, transfer: buffersOf(moved) };
  } catch (error) {
    // Drop the decoders: their builder holds some of this job's records.
    agents.delete(job.settings.key);
    throw error;
  }
}

/** Decodes lines in shared memory, into the shared memory for records; transferred lines into newly allocated memory. */
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

/** Decodes the job's lines, which are in `bytes`. With `space`, the batch is packed there. */
function decode(
  { settings, ranges }: DecodeJob,
  bytes: Uint8Array,
  decoders: AgentDecoders,
  space?: RangeArena,
): DecodedLines {
  const { builder } = decoders;
  const done: DecodedRange[] = [];
  const counters = { ...noValueCounts };
  const untimed: number[] = [];
  const unreadable = new Map<number, UnreadableField>();
  let years: Written['years'];
  for (const range of ranges) {
    if (builder.full) break;
    const decoder = decoderFor(decoders, settings, range);
    const before: ValueCounters = { ...decoder.counters };
    done.push(decodeRange(decoder, bytes, range, builder));
    ({ years } = decoder);
    for (const name of valueCountNames) counters[name] += decoder.counters[name] - before[name];
    for (const row of decoder.counters.takeUntimed()) untimed.push(row);
    joinUnreadable(unreadable, decoder.counters.takeFields());
  }
  decoders.rows = builder.rows;
  const packed = builder.finishPacked(space);
  return {
    bytes: null,
    packed,
    ranges: done,
    years,
    unreadable: [...unreadable.values()],
    untimed,
    ...counters,
  };
}

const decodeTask = taskIn(import.meta.url, { work });

/** Decodes lines on a thread of the pool; without a pool, on this thread. Unshared bytes are transferred to the thread and back. */
export async function decodeOnPool(pool: WorkerPool | null, job: DecodeJob): Promise<DecodedLines> {
  const { lines } = job;
  if (pool === null) return work(job).result;
  return pool.run(decodeTask, job, 'bytes' in lines ? buffersOf([lines.bytes]) : []);
}

/** Lines at bytes[start, end), all of one file. The last one may lack its line end. */
export interface LineRange extends LinesOrigin {
  readonly start: number;
  readonly end: number;
  /** Whether the range begins inside a line whose first part is already stored. */
  readonly continuesLine: boolean;
  /** The encoding of the bytes; absent for UTF-8. */
  readonly encoding?: Encoding | undefined;
}

/** The result of decoding a range. */
export interface DecodedRange {
  /** Number of records. */
  readonly rows: number;
  /** End offset of the last line that was decoded; less than the range's end where the batch became full. */
  readonly reached: number;
  readonly rejected: RejectedPlaces;
  /** What must be known to read on at `reached`; undefined where lines do not change it. */
  readonly reading?: Reading | undefined;
}

/** Decodes the lines of a range into `builder` until the builder is full. */
export function decodeRange(
  decoder: RecordDecoder,
  bytes: Uint8Array,
  range: Omit<LineRange, keyof LinesOrigin>,
  builder: BatchBuilder,
): DecodedRange {
  const rowsBefore = builder.rows;
  const rejected = new RejectedLines();
  let reached = firstLine(bytes, range, rejected);
  if (reached < range.end) reached = decoder.decode(bytes, reached, range.end, builder, rejected.add);
  assert(reached > range.start || reached === range.end || builder.full, 'the decoder took no line');
  const { reading } = decoder;
  return { rows: builder.rows - rowsBefore, reached, rejected: rejected.places, reading };
}

/** Offset of the first complete line of a range. The rest of a line before it is rejected. */
function firstLine(
  bytes: Uint8Array,
  { start, end, continuesLine, encoding }: Omit<LineRange, keyof LinesOrigin>,
  rejected: RejectedLines,
): number {
  if (continuesLine && encoding !== undefined) {
    const lineEnd = lineEndIn(bytes.subarray(start, end), encoding);
    const rest = reencoded(bytes.subarray(start, start + lineEnd), encoding).bytes;
    const text = rest.slice(0, rowEnd(rest, 0, rest.length));
    if (text.length > 0) rejected.add(continuationReason, start, start + lineEnd, text);
    return start + lineEnd;
  }
  // NULs mean that the rest was never written.
  return continuesLine && bytes[start] !== 0 ? rejected.addRest(bytes, start, end) : start;
}

/** The ranges that are still to be decoded after a job with the results `done`. The first begins where the batch became full. */
export function rangesLeft(
  ranges: readonly LineRange[],
  done: readonly DecodedRange[],
  years: LinesOrigin['written']['years'],
): LineRange[] {
  const last = ranges[done.length - 1];
  const left = ranges.slice(done.length);
  if (last === undefined) return left;
  const { reached, reading = last.reading } = done.at(-1)!;
  if (reached === last.end) return left;
  const written = { ...last.written, years };
  return [{ ...last, start: reached, continuesLine: false, written, reading }, ...left];
}
