import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import {
  probeFilters,
  ruling,
  type FilterQuestion,
  type FirstProbes,
  type Reading,
  type Ruling,
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
  /** Row groups that are asked about. */
  readonly rowGroups: readonly number[];
}

export interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  readonly firsts: FirstProbes;
  readonly segments: readonly ProbedSegment[];
}

export interface ProbeAnswers {
  /** For each segment, what is said of its row groups. */
  readonly rulings: readonly (readonly Ruling[])[];
  readonly firsts: FirstProbes;
  readonly gramPiecesRead: number;
  readonly valuePiecesRead: number;
  readonly bytesRead: number;
}

/** Summaries that a thread keeps, in bytes of their files: those of thousands of segments. */
const summaryBytesMax = 16 * 1024 * 1024;

interface KeptSummary {
  readonly filters: SegmentFilters | null;
  readonly bytes: number;
}

/** By path and offset, the least recently used first. */
const summaries = new Map<string, KeptSummary>();
let summaryBytes = 0;

/** Asks the filters of segments, one after another: the work of `probeTask`. Throws what reading a file throws. */
export function work({ questions, firsts, segments }: ProbeJob): Finished<ProbeAnswers> {
  const counters = { gramPiecesRead: 0, valuePiecesRead: 0, bytesRead: 0 };
  const read = (path: string, offset: number, bytes: number): Uint8Array => {
    const target = new Uint8Array(bytes);
    const done = openFiles.read(path, offset, target);
    counters.bytesRead += done;
    return done === bytes ? target : target.subarray(0, done);
  };
  const rulings = segments.map((segment) => {
    const { path, fields, rowGroups } = segment;
    const filters = filtersOf(segment, read);
    if (filters === null) return rowGroups.map(() => ruling.mayMatch);
    return readAll(probeFilters(filters, rowGroups, questions, fields, firsts, counters), path, read);
  });
  return { result: { rulings, firsts, ...counters }, transfer: [] };
}

type Read = (path: string, offset: number, bytes: number) => Uint8Array;

function readAll<T>(reading: Reading<T>, path: string, read: Read): T {
  let step = reading.next();
  while (step.done !== true) step = reading.next(read(path, step.value.offset, step.value.bytes));
  return step.value;
}

/** Null where a summary is damaged, which `verify` reports. */
function filtersOf(
  { path, summary, places, rowGroupCount }: ProbedSegment,
  read: Read,
): SegmentFilters | null {
  if (places !== null) return new SegmentFilters(places, rowGroupCount);
  const key = `${path}@${summary.offset}`;
  let kept = summaries.get(key);
  if (kept === undefined) {
    kept = {
      filters: decodeSummary(read(path, summary.offset, summary.bytes), rowGroupCount),
      bytes: summary.bytes,
    };
    summaryBytes += kept.bytes;
  } else {
    summaries.delete(key);
  }
  summaries.set(key, kept);
  for (const [oldest, { bytes }] of summaries) {
    if (summaryBytes <= summaryBytesMax) break;
    summaries.delete(oldest);
    summaryBytes -= bytes;
  }
  return kept.filters;
}

/** Looks values and texts up in the filters of several segments. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };
