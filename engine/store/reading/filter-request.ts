import type { FilterQuestion } from '../sealed/filter-question.js';
import type { FilterProbes } from './filter-probes.js';
import type { ReadCounters } from './read-counters.js';
import type { SegmentRulings } from '../sealed/segment-rulings.js';

/** A request to the filters of one segment. */
export interface FilterRequest {
  /** Row groups to rule on. None of them has been asked about before. */
  readonly rowGroups: readonly number[];
  /** Receives the answers. */
  readonly rulings: SegmentRulings;
  readonly questions: readonly FilterQuestion[];
  /** Null where the calling thread reads the filters itself. */
  readonly threads: FilterProbes | null;
  readonly counters: ReadCounters;
}

/** The filters of one file. Its row groups share one object, so that one request can ask about many of them. */
export interface FileFilters {
  /** Number of row groups in the file. */
  readonly rowGroups: number;
  /**
   * Asks the filters about row groups. Reads only the pieces that are needed, and batches the request with those to other files in the same
   * turn of the event loop. The promise never rejects; it resolves once `rulings` has the answers or the failure. Null where there is
   * nothing to wait for: the answers are known, or no filter can answer.
   */
  ask(request: FilterRequest): Promise<void> | null;
}
