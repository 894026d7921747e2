import { probeReadBytes } from '../../terms/limits.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { FilterProbing, type FirstReads, type ProbeCounters, type Reading } from './filter-probing.js';
import type { FilterQuestion } from './filter-question.js';
import { SegmentFilters, type FilterPlaces } from './segment-filters.js';
import { SegmentRulings } from './segment-rulings.js';
import { summaryAt } from './summary-cache.js';

/** A segment in a local file whose filters are asked. */
export interface ProbedSegment {
  /** Absolute path. */
  readonly path: string;
  /** Place of the segment's summary, which has the places of its filters. A segment without a summary has them in `places`. */
  readonly summary: { readonly offset: number; readonly bytes: number };
  readonly places: FilterPlaces | null;
  readonly rowGroupCount: number;
  /** For each question, the index of the stored field; negative if the segment cannot be asked. */
  readonly fields: readonly number[];
}

/** A request to ask the filters of some segments all questions of a query. */
export interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  readonly firsts: FirstReads;
  readonly segments: readonly ProbedSegment[];
  /** The bytes of the `SegmentRulings` of all segments. Row groups to ask about are `mayMatch`. */
  readonly rulings: Uint8Array<ArrayBuffer>;
}

/** The answers to a `ProbeJob`, and what was read for them. */
export interface ProbeAnswers extends ProbeCounters {
  /** The bytes of the job, with the answers and what rules row groups out. */
  readonly rulings: Uint8Array<ArrayBuffer>;
  readonly firsts: FirstReads;
  readonly bytesRead: number;
}

/** Buffer for reads, allocated once, because allocating some kilobytes takes longer than the reads. */
const lastRead = new Uint8Array(probeReadBytes);

/** Asks the filters of segments, one after another. Throws the errors of reading a file. */
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
    const { path, places, summary, fields, rowGroupCount } = segment;
    const end = at + SegmentRulings.sizeBytes(rowGroupCount, questions.length);
    const own = new SegmentRulings(rowGroupCount, questions.length, rulings.subarray(at, end));
    at = end;
    const filters =
      places === null
        ? summaryAt({ path, ...summary, rowGroups: rowGroupCount }, read)
        : new SegmentFilters(places, rowGroupCount);
    if (filters !== null) readAll(probing.probe(filters, fields, own), path, read);
  }
  return { result: { rulings, firsts, ...counters }, transfer: [rulings.buffer] };
}

type Read = (path: string, offset: number, bytes: number) => Uint8Array;

function readAll(reading: Reading<void>, path: string, read: Read): void {
  let step = reading.next();
  while (step.done !== true) step = reading.next(read(path, step.value.offset, step.value.bytes));
}

/** Asks the filters of several segments on a thread. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };
