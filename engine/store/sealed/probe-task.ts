import { probeReadBytes } from '../../terms/limits.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { FilterProbing, type FirstReads, type ProbeCounters, type Reading } from './filter-probing.js';
import type { FilterQuestion } from './filter-question.js';
import { SegmentFilters, type FilterPlaces } from './segment-filters.js';
import { SegmentRulings } from './segment-rulings.js';
import { summaryAt } from './summary-cache.js';

/** A segment whose filters are asked, in a file of the real file system. */
export interface ProbedSegment {
  /** Absolute. */
  readonly path: string;
  /** Where its filters lie: the place of its summary, or the places themselves where it has none. */
  readonly summary: { readonly offset: number; readonly bytes: number };
  readonly places: FilterPlaces | null;
  readonly rowGroupCount: number;
  /** The stored field of each question; negative where the segment can't be asked. */
  readonly fields: readonly number[];
}

export interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  readonly firsts: FirstReads;
  readonly segments: readonly ProbedSegment[];
  /** The bytes of each segment's `SegmentRulings`: `mayMatch` for the row groups that are asked about. */
  readonly rulings: Uint8Array<ArrayBuffer>;
}

export interface ProbeAnswers extends ProbeCounters {
  /** As in the job, with what was said and what rules row groups out. */
  readonly rulings: Uint8Array<ArrayBuffer>;
  readonly firsts: FirstReads;
  readonly bytesRead: number;
}

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

/** Looks values and texts up in the filters of several segments. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };
