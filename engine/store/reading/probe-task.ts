import { probeReadBytes } from '../../terms/limits.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import {
  FilterProbing,
  type FilterQuestion,
  type FirstReads,
  type ProbeCounters,
  type Reading,
} from '../sealed/filter-probing.js';
import { decodeSummary, SegmentFilters, type FilterPlaces } from '../sealed/segment-filters.js';

/** A segment whose filters are asked, in a file of the real file system. */
export interface ProbedSegment {
  /** Absolute. */
  readonly path: string;
  /** Where its filters lie: the place of its summary, or the places themselves where it has none. */
  readonly summary: { readonly offset: number; readonly bytes: number };
  readonly places: FilterPlaces | null;
  readonly rowGroupCount: number;
  /** The stored field of each question; -1 where the segment can't be asked. */
  readonly fields: readonly number[];
}

export interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  readonly firsts: FirstReads;
  readonly segments: readonly ProbedSegment[];
  /** For each row group of each of `segments`: `mayMatch` where it is asked about. */
  readonly rulings: Uint8Array<ArrayBuffer>;
}

export interface ProbeAnswers extends ProbeCounters {
  /** As in the job, with what rules row groups out. */
  readonly rulings: Uint8Array<ArrayBuffer>;
  readonly firsts: FirstReads;
  readonly bytesRead: number;
}

/** Memory for summaries that a thread keeps, and for checksums of filters that come with them: those of thousands of segments. */
const summaryBytesMax = 16 * 1024 * 1024;

interface KeptSummary {
  readonly offset: number;
  readonly filters: SegmentFilters | null;
  readonly bytes: number;
}

/** By path, the oldest first. */
const summaries = new Map<string, KeptSummary>();
let summaryBytes = 0;

/** What was read last, made once: new arrays of some kilobytes take longer than the reads. */
const lastRead = new Uint8Array(probeReadBytes);

/** Asks the filters of segments, one after another: the work of `probeTask`. Throws what reading a file throws. */
export function work({ questions, firsts, segments, rulings }: ProbeJob): Finished<ProbeAnswers> {
  const counters = { gramPiecesRead: 0, valuePiecesRead: 0, bytesRead: 0 };
  const read = (path: string, offset: number, bytes: number): Uint8Array => {
    const target = bytes <= lastRead.length ? lastRead.subarray(0, bytes) : new Uint8Array(bytes);
    const done = openFiles.read(path, offset, target);
    counters.bytesRead += done;
    return done === bytes ? target : target.subarray(0, done);
  };
  const probing = new FilterProbing(questions, firsts, counters);
  let at = 0;
  for (const segment of segments) {
    const { path, fields, rowGroupCount } = segment;
    const own = rulings.subarray(at, at + rowGroupCount);
    at += rowGroupCount;
    const filters = filtersOf(segment, read);
    if (filters !== null) readAll(probing.probe(filters, fields, own), path, read);
  }
  return { result: { rulings, firsts, ...counters }, transfer: [rulings.buffer] };
}

type Read = (path: string, offset: number, bytes: number) => Uint8Array;

function readAll(reading: Reading<void>, path: string, read: Read): void {
  let step = reading.next();
  while (step.done !== true) step = reading.next(read(path, step.value.offset, step.value.bytes));
}

/** Null where a summary is damaged, which `verify` reports. */
function filtersOf(
  { path, summary, places, rowGroupCount }: ProbedSegment,
  read: Read,
): SegmentFilters | null {
  if (places !== null) return new SegmentFilters(places, rowGroupCount);
  const known = summaries.get(path);
  if (known?.offset === summary.offset) return known.filters;
  if (known !== undefined) forget(path, known.bytes);
  const filters = decodeSummary(read(path, summary.offset, summary.bytes), rowGroupCount);
  const kept = { offset: summary.offset, filters, bytes: summary.bytes + (filters?.checksumBytes ?? 0) };
  summaries.set(path, kept);
  summaryBytes += kept.bytes;
  for (const [oldest, { bytes }] of summaries) {
    if (summaryBytes <= summaryBytesMax) break;
    forget(oldest, bytes);
  }
  return filters;
}

function forget(path: string, bytes: number): void {
  summaries.delete(path);
  summaryBytes -= bytes;
}

/** Looks values and texts up in the filters of several segments. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };
