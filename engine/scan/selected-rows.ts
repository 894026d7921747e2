import { takeRows } from '../columns/take.js';
import type { RecordBatch } from '../columns/column.js';
import type { Run } from '../store/manifest/manifest.js';
import { newScanStats, canResume } from './answer.js';
import { finderOf, type FinderWork, type RemoteSource } from './tiered-finder.js';
import { Pace } from '../store/reading/pace.js';
import { assertStanding, planScan } from './plan.js';
import { preparePredicates } from './predicate.js';
import type { Query } from './query.js';
import { RowGroupFilter, type ScanWork } from './row-group-filter.js';
import { wantedRows } from './json-lines.js';
import type { Matches } from './selection.js';
import { endOfSnapshot, type Snapshot } from '../store/reading/snapshot.js';
import { queueOf, type WorkerPool } from '../workers/worker-pool.js';
import { writtenFields } from './json-columns.js';

/**
 * Matching rows of one row group as columns, with the fields that the query asks for. `runs` gives the positions of the rows; their
 * `firstRow` is an index in `batch`.
 */
export interface SelectedRows {
  readonly batch: RecordBatch;
  readonly runs: readonly Run[];
}

interface SelectSettings {
  readonly signal?: AbortSignal | undefined;
  readonly workers?: WorkerPool | undefined;
  /** Reads rows on other machines. */
  readonly remote?: RemoteSource | undefined;
}

/**
 * The answer to a query as columns instead of lines, in ascending order of positions. For exports, which need the stored values instead of
 * text. If another process removes a segment meanwhile, the scan continues in the newest state after the last row that it gave; records
 * that were added later are not part of the answer. With threads the next rows are read while the caller works on the last ones. Errors are
 * those of `executeScan`.
 */
export async function* selectRows(
  takeSnapshot: () => Promise<Snapshot>,
  query: Query,
  settings: SelectSettings = {},
): AsyncGenerator<SelectedRows> {
  let snapshot = await takeSnapshot();
  let rest: Query = { ...query, before: query.before ?? endOfSnapshot(snapshot) };
  for (let attempt = 1; ; attempt++) {
    try {
      for await (const rows of rowsOfSnapshot(snapshot, rest, settings)) {
        const { partition, firstOrdinal, rows: count } = rows.runs.at(-1)!;
        yield rows;
        const after = { partition, ordinal: firstOrdinal + count - 1 };
        rest = { ...rest, after, limit: rest.limit - rows.batch.length };
      }
      return;
    } catch (error) {
      if (!canResume(error, attempt)) throw error;
    }
    snapshot = await takeSnapshot();
  }
}

/** Releases the snapshot in any case, once no thread uses its files. */
async function* rowsOfSnapshot(
  snapshot: Snapshot,
  query: Query,
  { signal, workers, remote }: SelectSettings,
): AsyncGenerator<SelectedRows> {
  const threads = queueOf(workers, signal);
  try {
    const work = { stats: newScanStats(), pace: new Pace(signal), threads, remote };
    const pieces = rowsFound(snapshot, query, work);
    for await (const rows of threads === null ? pieces : oneAhead(pieces)) yield rows;
  } finally {
    threads?.end();
    await threads?.underWay();
    snapshot.release();
  }
}

/**
 * Yields the elements of `source`, making each while the caller works on the one before. Ending early waits for the element in progress.
 */
async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const result = await next;
      if (result.done === true) return;
      next = source.next();
      // Mark the promise as handled: the caller may never ask for the element, and then nobody sees the failure.
      next.catch(() => undefined);
      yield result.value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}

async function* rowsFound(snapshot: Snapshot, query: Query, work: FinderWork): AsyncGenerator<SelectedRows> {
  const predicates = preparePredicates(query, snapshot.schema);
  if (query.limit === 0) return;
  assertStanding(snapshot.runs, [query.after, query.before]);
  const plan = planScan(snapshot.runs, query);
  const { schema } = snapshot;
  const { fields } = writtenFields(schema, query);
  const filter = new RowGroupFilter(schema, predicates, work);
  const finder = finderOf(plan, filter, work, { schema, predicates, fields });
  for await (const matches of finder.matches(query.limit)) yield await rowsOf(matches, fields, work);
}

async function rowsOf(
  matches: Matches,
  fields: readonly number[],
  { stats, pace, threads }: ScanWork,
): Promise<SelectedRows> {
  const { rowGroup } = matches.unit;
  const open = await rowGroup.open(threads, stats);
  const { indices, runs } = wantedRows(matches);
  await pace.pause();
  const held = await open.columns(fields, stats, { use: 'once', signal: pace.signal });
  try {
    return { batch: takeRows({ length: rowGroup.rows, columns: held.columns }, indices), runs };
  } finally {
    held.release();
  }
}
