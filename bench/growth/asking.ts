import { FiltersAhead } from '../../engine/archive/filters-ahead.js';
import { makeReady } from '../../engine/archive/ready-task.js';
import { Store } from '../../engine/archive/store.js';
import {
  openArchive,
  WorkerPool,
  workersDefault,
  type AgentStore,
  type ScanStats,
} from '../../engine/index.js';
import { assert } from '../../engine/terms/assert.js';
import { parseQueryRequest } from '../../server/request/query-request.js';
import { endMs, webAgent } from './web-store.js';

/** What a process has measured for a question, in milliseconds. */
export interface Asked {
  /** Time to open the archive and the agent, and to start the threads. */
  readonly openMs: number;
  /** The first answer after opening. */
  readonly firstMs: number;
  /** Further answers; empty where filters were read ahead, as these would be the same. */
  readonly warmMs: readonly number[];
  /** Number of records in each answer. */
  readonly rows: number;
  readonly first: ScanStats;
  readonly warm: ScanStats;
}

/** Runs that are not counted, the maximum number of those that are, and the milliseconds for them. */
const warmUpRuns = 5;
const runsMax = 50;
const budgetMs = 1000;

/**
 * Asks a question as in a server, where the threads have been started.
 *
 * @param isAhead whether filters have been read ahead as well, which a server begins once it has opened its agents
 */
async function ask(location: string, raw: string, isAhead: boolean): Promise<Asked> {
  const { name } = webAgent(false);
  const startMs = performance.now();
  const workers = new WorkerPool(workersDefault());
  const ready = makeReady(workers);
  const archive = await openArchive(location, {
    mode: 'write',
    role: 'bench',
    now: () => endMs,
    background: { threads: 0 },
    workers,
  });
  const store = await archive.agent(name);
  const { schema } = store;
  await ready;
  const openMs = performance.now() - startMs;
  if (isAhead) await readAhead(store, workers);
  const bounds = { timezone: 'UTC', limitMax: 1000, limitDefault: 100 };
  const once = async (): Promise<{ ms: number; rows: number; stats: ScanStats }> => {
    const askedMs = performance.now();
    const scan = await store.scan(parseQueryRequest(raw, { schema, now: endMs, ...bounds }));
    let rows = 0;
    for await (const piece of scan.lines) for (const byte of piece) if (byte === 10) rows++;
    return { ms: performance.now() - askedMs, rows, stats: scan.stats };
  };
  const first = await once();
  const warmMs: number[] = [];
  let last = first;
  if (!isAhead) {
    for (let i = 0; i < warmUpRuns; i++) await once();
    const beginMs = performance.now();
    do {
      last = await once();
      warmMs.push(last.ms);
    } while (warmMs.length < runsMax && performance.now() - beginMs < budgetMs);
  }
  await archive.close();
  await workers.close();
  return { openMs, firstMs: first.ms, warmMs, rows: first.rows, first: first.stats, warm: last.stats };
}

async function readAhead(store: AgentStore, workers: WorkerPool): Promise<void> {
  assert(store instanceof Store, 'the archive is one of the engine');
  const ahead = new FiltersAhead(workers);
  ahead.add(store.context.state);
  await ahead.done();
}

const [location, raw, isAhead] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await ask(location!, raw!, isAhead === 'ahead')));
