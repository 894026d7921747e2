import { BatchBuilder } from '../../engine/batch-builder.js';
import type { RecordBatch } from '../../engine/column.js';
import { packBatch, packedBytes } from '../../engine/packed-batch.js';
import { RangeArrays } from '../../engine/array-space.js';
import { buffersOf, builtModule, type Finished, type Task } from '../../engine/workers/task.js';
import type { WorkerPool } from '../../engine/workers/worker-pool.js';
import type { AgentDefinition } from '../definition.js';
import { RejectedLines } from '../frame-decoder.js';
import { createRecordDecoder, type RecordDecoder } from '../record-decoder.js';
import type { ValueCounters } from '../value-writer.js';

/** What the lines of one agent are decoded with. */
export interface CollectSettings {
  /** Tells the settings of this process apart. */
  readonly key: number;
  readonly definition: AgentDefinition;
  readonly timezone: string;
}

let settingsMade = 0;

/** Settings with a key of their own. */
export function collectSettings(definition: AgentDefinition, timezone: string): CollectSettings {
  return { key: settingsMade++, definition, timezone };
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
}

export interface CollectJob {
  readonly settings: CollectSettings;
  /** The clock, in milliseconds. */
  readonly nowMs: number;
  readonly bytes: Uint8Array;
  readonly ranges: readonly CollectRange[];
  /** Memory for the records, which is written over; what does not fit gets memory of its own. */
  readonly target: Uint8Array;
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
  /** Those of the job, which come back. */
  readonly bytes: Uint8Array;
  /** Records, packed; null for none. They lie at the beginning of their memory: that of the job, if it had the room. */
  readonly packed: Uint8Array | null;
  /** The memory for the job after: what the records lie in, or the job's where there are none. */
  readonly target: Uint8Array;
  readonly ranges: readonly CollectedRange[];
}

interface OpenDecoder {
  readonly decoder: RecordDecoder;
  nowMs: number;
}

/** One agent's decoders, by the names of the captures: hardly more than one. */
interface AgentDecoders {
  readonly builder: BatchBuilder;
  /** Records of the job before. */
  rows: number;
  readonly byNames: Map<string, OpenDecoder>;
}

/** Agents whose decoders a thread keeps, with their patterns compiled; the one longest unused goes. */
const agentsMax = 64;
const agents = new Map<number, AgentDecoders>();

function decodersOf({ key, definition }: CollectSettings): AgentDecoders {
  const known = agents.get(key) ?? {
    builder: new BatchBuilder(definition.schema),
    rows: 0,
    byNames: new Map<string, OpenDecoder>(),
  };
  agents.delete(key);
  agents.set(key, known);
  if (agents.size > agentsMax) agents.delete(agents.keys().next().value!);
  return known;
}

function decoderFor(
  { byNames }: AgentDecoders,
  { definition, timezone }: CollectSettings,
  captures: ReadonlyMap<string, string>,
): OpenDecoder {
  const names = [...captures.keys()].join(' ');
  let opened = byNames.get(names);
  if (opened === undefined) {
    const decoder = createRecordDecoder(definition, { captures, timezone, now: () => fresh.nowMs });
    const fresh: OpenDecoder = { decoder, nowMs: 0 };
    opened = fresh;
    byNames.set(names, opened);
  }
  opened.decoder.useCaptures(captures);
  return opened;
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

/** What columns grow in, while those of a job are made: they take so many times the lines' bytes, and numbers may take more. */
const arraysShare = 3;
const arraysBytesMin = 256 * 1024;

/**
 * Memory in which the columns of one job after the other are made: all agents', since a thread does one job at a time. New memory for each
 * job would have the garbage collector run all the time.
 */
let arrays = new Uint8Array(0);

/** Room for the columns of so many bytes of lines. */
function arraysFor(linesBytes: number): RangeArrays {
  const wanted = arraysBytesMin + linesBytes * arraysShare;
  if (arrays.length < wanted) arrays = new Uint8Array(wanted);
  return new RangeArrays(arrays);
}

/** A batch at the beginning of `target`, or in memory of its own where that has not the room; null without rows. */
function packInto(target: Uint8Array, batch: RecordBatch): Uint8Array | null {
  if (batch.length === 0) return null;
  const sizeBytes = packedBytes(batch);
  const packed = sizeBytes <= target.length ? target.subarray(0, sizeBytes) : new Uint8Array(sizeBytes);
  packBatch(batch, packed, 0);
  return packed;
}

/** Decodes lines of several files into one batch. Throws `invalid` for a definition that makes no sense. */
export function work(job: CollectJob): Finished<CollectedLines> {
  const { ranges, settings } = job;
  const decoders = decodersOf(settings);
  const linesBytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  try {
    return decoders.builder.within(arraysFor(linesBytes), decoders.rows, () => decode(job, decoders));
  } catch (error) {
    // What the builder holds by now belongs to no other job.
    agents.delete(settings.key);
    throw error;
  }
}

function decode(
  { settings, nowMs, bytes, ranges, target: given }: CollectJob,
  decoders: AgentDecoders,
): Finished<CollectedLines> {
  const { builder } = decoders;
  const done: CollectedRange[] = [];
  const counters = { unreadableValues: 0, replacedBytes: 0 };
  for (const range of ranges) {
    if (builder.full) break;
    const opened = decoderFor(decoders, settings, range.captures);
    opened.nowMs = nowMs;
    const { decoder } = opened;
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
  const packed = packInto(given, builder.finish());
  const target = packed === null ? given : new Uint8Array(packed.buffer);
  const result: CollectedLines = { bytes, packed, target, ranges: done, ...counters };
  return { result, transfer: buffersOf([bytes, target]) };
}

const collectTask: Task<CollectJob, CollectedLines> = { module: builtModule(import.meta.url), work };

/** Decodes lines on a thread of the pool, to which their buffer and that for the records move, and from which they come back. */
export function collectOnPool(pool: WorkerPool, job: CollectJob): Promise<CollectedLines> {
  return pool.run(collectTask, job, buffersOf([job.bytes, job.target]));
}
