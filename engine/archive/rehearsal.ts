import { executeScan } from '../scan/execute.js';
import type { Query } from '../scan/plan/query.js';
import type { AgentState } from '../store/reading/agent-state.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** Number of runs at the end of the records that are queried. */
const rehearsedRuns = 8;
/** A text that no record contains. It is long enough for filters of all kinds to be asked. */
const absentText = 'logstrata rehearsal 4c0e5d7b92f8';

/**
 * Answers a few queries on an agent's newest records before a user asks any: for records, for a value that does not occur, and for a text that
 * does not occur. Node compiles code when it first runs, here and on each thread, and that takes much of the time of a process's first answers.
 * The promise does not reject: a query that fails here fails for its user too.
 *
 * Returns undefined where there is nothing to query, or where the records may be on another machine.
 */
export function rehearse(
  state: AgentState,
  workers: WorkerPool,
  signal: AbortSignal,
): Promise<void> | undefined {
  const queries = queriesOn(state);
  return queries.length === 0 ? undefined : answer(queries, state, workers, signal);
}

async function answer(
  queries: readonly Query[],
  state: AgentState,
  workers: WorkerPool,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const query of queries) {
      const { lines } = executeScan(state.snapshot(), query, { workers, signal });
      for await (const _ of lines);
    }
  } catch {
    // The archive is closed, or is damaged where these queries read it.
  }
}

function queriesOn(state: AgentState): Query[] {
  const { schema, runs, release } = state.snapshot();
  const first = Math.max(0, runs.length - rehearsedRuns);
  const newest = Array.from({ length: runs.length - first }, (_, i) => runs.at(first + i)!);
  release();
  const [from] = newest;
  if (from === undefined || newest.some(({ rowGroup }) => rowGroup.far !== undefined)) return [];
  if (state.attached.runs().length > 0) return [];
  const ends = {
    limit: 100,
    after: { partition: from.partition, ordinal: from.firstOrdinal - 1 },
    last: true,
  } as const;
  const records: Query = { ...ends, predicates: [] };
  const field = schema.fields.findIndex(({ type }) => type === 'string');
  if (field < 0) return [records];
  return [
    records,
    { ...ends, predicates: [{ kind: 'string', field, op: 'exact', value: absentText }] },
    { ...ends, predicates: [{ kind: 'anywhere', isAbsent: false, value: absentText }] },
  ];
}
