import type { FilterQuestion } from '../sealed/filter-question.js';
import type { QueryThreads } from './query-threads.js';
import type { ReadCounters } from './read-counters.js';
import type { SegmentRulings } from '../sealed/segment-rulings.js';

/** What is asked of the filters of one segment. */
export interface FilterAsk {
  /** Row groups that nobody has asked about. */
  readonly rowGroups: readonly number[];
  /** Takes the answer. */
  readonly rulings: SegmentRulings;
  readonly questions: readonly FilterQuestion[];
  /** Null where the thread that asks is to read them itself. */
  readonly threads: QueryThreads | null;
  readonly counters: ReadCounters;
}

/** The filters of one file. All its row groups have the same ones, so that they can be asked about together. */
export interface AskableFilters {
  /** Row groups of the file. */
  readonly rowGroups: number;
  /**
   * Asks about row groups, without a footer. Reads only the pieces that are needed, together with those of other files that are asked
   * in the same turn of the event loop. Resolves, never rejects, when `rulings` has what rules row groups out; null where no filter could
   * tell.
   */
  ask(ask: FilterAsk): Promise<void> | null;
}
