import { kernelsOver } from '../kernels/kernels.js';
import { sharedMemory } from '../core/shared-memory.js';
import { executeScan } from '../scan/answer.js';
import type { Predicate, Query } from '../scan/query.js';
import { prepareTask } from '../store/attached/span-tasks.js';
import type { AgentState } from '../store/reading/agent-state.js';
import { probeJobOf, probeTask } from '../store/sealed/probe-task.js';
import type { WorkerPool } from '../workers/worker-pool.js';

/** Number of runs at the end of the records that are queried: so many that the code which handles each of them is compiled. */
const warmedRuns = 64;
/**
 * Number of values that are asked for, so that an engine begins to compile what answers them. With 16 values over 64 runs instead of one over 8,
 * the first asking for an id over HTTP took 16 ms instead of 21, and that for twelve digits 16 instead of 23 (2 million records).
 */
const warmedValues = 6;
/** The beginning of texts that no record contains, which is long enough for filters of all kinds to be asked. */
const absentText = 'logstrata warm-up 4c0e5d7b92f8';

/** Begins all threads: that takes longer than most answers. One that can't be begun now is begun for the first job that needs it. */
export async function beginThreads(workers: WorkerPool): Promise<void> {
  kernelsOver(sharedMemory());
  const nothing = { questions: [], ...probeJobOf([]), rulings: new Uint8Array(0) };
  await workers.begin(probeTask, nothing).catch(() => undefined);
}

/**
 * Asks an agent for its newest records, and for a text and some values that no record has, before a user asks anything. That has the code
 * compiled, here and on the threads. Of files of other programs, which may be far away, it reads nothing, and only loads the code that
 * decodes them. Never rejects: a query that fails here fails for its user too.
 *
 * @returns whether the agent has records, and none that may be on another machine, so that it was asked
 */
export async function warmUp(state: AgentState, workers: WorkerPool, signal: AbortSignal): Promise<boolean> {
  try {
    if (state.attached.files().length > 0)
      await Promise.all(Array.from({ length: workers.threads }, () => workers.run(prepareTask, null)));
    const query = newestRecords(state);
    if (query === null) return false;
    const field = state.schema.fields.findIndex(({ type }) => type === 'string');
    const asked: Predicate[][] = [[], [{ kind: 'anywhere', op: 'like', isAbsent: false, value: absentText }]];
    for (let i = 0; field >= 0 && i < warmedValues; i++)
      asked.push([{ kind: 'string', field, op: 'exact', value: `${absentText} ${i}` }]);
    for (const predicates of asked) {
      const { lines } = executeScan(state.snapshot(), { ...query, predicates }, { workers, signal });
      for await (const _ of lines);
    }
  } catch {
    // The archive is closed, or is damaged where these queries read it.
  }
  return true;
}

function newestRecords(state: AgentState): Query | null {
  if (state.damage !== undefined) return null;
  const { runs, release } = state.snapshot();
  const first = Math.max(0, runs.length - warmedRuns);
  const newest = Array.from({ length: runs.length - first }, (_, i) => runs.at(first + i)!);
  release();
  const [from] = newest;
  const isElsewhere =
    state.attached.runs().length > 0 || newest.some(({ rowGroup }) => rowGroup.remote !== undefined);
  if (from === undefined || isElsewhere) return null;
  const after = { partition: from.partition, ordinal: from.firstOrdinal - 1 };
  return { limit: 100, after, last: true, predicates: [] };
}
