import { bulkRowsMin, inlineRowsMax, lineJobRowsMin } from '../terms/limits.js';
import type { AnswerTurns, Turn } from './write/answer-turns.js';
import { BulkLines } from './write/bulk-lines.js';
import { finderOf } from './far/tiered-finder.js';
import { JsonLines } from './write/json-lines.js';
import { Materialiser } from './write/materialise.js';
import type { LentSpace } from './write/piece-space.js';
import { Pace, throwIfAborted } from '../store/reading/pace.js';
import { planScan } from './plan/plan.js';
import { preparePredicates } from './filter/predicate.js';
import type { Query, ScanStats } from './plan/query.js';
import type { QueryThreads } from '../store/reading/query-threads.js';
import { readingEstimate, tooMuchToRead } from './filter/reading-estimate.js';
import { RowGroupFilter } from './filter/row-group-filter.js';
import type { Snapshot } from '../store/reading/snapshot.js';
import { eachMade, type Steps } from '../store/reading/steps.js';
import type { Matches } from './filter/selection.js';
import { writtenFields } from './write/written-fields.js';

/** The settings and resources that an answer is made with. */
export interface AnswerWork {
  readonly signal: AbortSignal | undefined;
  readonly pieceBytes: number;
  /** The most bytes of columns that the query may have to read; see `ScanOptions.bytesMax`. */
  readonly bytesMax?: number | undefined;
  /** The memory of its pieces. */
  readonly space: LentSpace;
  readonly stats: ScanStats;
  readonly threads: QueryThreads | null;
  readonly turns: AnswerTurns;
  /** Called with true when the answer begins to wait for its turn, and with false when the wait is over. */
  readonly onTurn?: ((waits: boolean) => void) | undefined;
}

/** The state of an answer, for its reader. */
export interface AnswerProgress {
  /** No piece follows the one that was yielded last. */
  isAtEnd: boolean;
  /** The turn that the answer holds, which allows it to write lines ahead; null where it holds none. */
  turn(): Turn | null;
}

/**
 * Finds the matches of a query and writes them as lines, in pieces of at most `pieceBytes` unless one line is longer. The caller closes
 * `work.space`, which still holds the last piece at the end. Throws `invalid` for a query that does not fit the schema or has to read more
 * than `bytesMax`, and `cancelled`.
 */
export function* answer(
  snapshot: Snapshot,
  query: Query,
  work: AnswerWork,
  progress: AnswerProgress,
): Steps<Uint8Array> {
  const { signal, pieceBytes, bytesMax, space, stats, threads, turns, onTurn } = work;
  throwIfAborted(signal);
  const { schema } = snapshot;
  const predicates = preparePredicates(query, schema);
  if (query.limit === 0) return;
  const startMs = performance.now();
  const plan = planScan(snapshot.runs, query);
  stats.runs = plan.end - plan.first;
  stats.rowGroups = plan.rowGroups;
  const pace = new Pace(signal);
  const lines = new JsonLines(pieceBytes, space);
  const written = writtenFields(schema, query);
  const materialiser = new Materialiser(written, lines, { stats, pace, threads });
  const scan = { stats, pace, threads, onWait: () => materialiser.close() };
  const filter = new RowGroupFilter(schema, predicates, scan);
  if (bytesMax !== undefined) {
    const size = { fields: written.fields, limit: query.limit };
    const bytes = yield* readingEstimate(plan, filter.pruning, size, scan);
    if (bytes > bytesMax) throw tooMuchToRead(bytes, bytesMax);
  }
  const finder = finderOf(plan, filter, scan, { schema, predicates, fields: written.fields });
  const bulk =
    threads === null ? null : new BulkLines(written, pieceBytes, space, { ...scan, threads, turns, onTurn });
  progress.turn = () => bulk?.turn ?? null;
  stats.selectMs += performance.now() - startMs;
  function* write(matches: Matches): Steps<Uint8Array> {
    if (bulk === null) {
      yield* materialiser.write(matches);
    } else if (isForThreads(matches, stats.rowsReturned + lines.rows)) {
      yield* materialiser.finish();
      yield* bulk.write(matches);
    } else {
      yield* bulk.finish();
      yield* materialiser.write(matches);
    }
  }
  try {
    yield* eachMade(finder.matches(query.limit), write);
    if (bulk !== null) yield* bulk.finish();
    progress.isAtEnd = true;
    yield* materialiser.finish();
  } finally {
    materialiser.close();
    bulk?.close();
  }
}

/** Whether threads write the rows. Handing over few rows takes longer than writing them here, unless the answer is long already. */
function isForThreads({ take }: Matches, rowsBefore: number): boolean {
  return take >= bulkRowsMin || (take >= lineJobRowsMin && rowsBefore >= inlineRowsMax);
}
