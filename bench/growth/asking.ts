import { AgentStore } from '../../engine/archive/agent-store.js';
import { beginThreads, warmUp } from '../../engine/archive/warm-up.js';
import { openArchive, WorkerPool, workersDefault, type ScanStats } from '../../engine/index.js';
import { assert } from '../../engine/core/errors.js';
import { parseQueryRequest } from '../../server/http/query-request.js';
import { bytesFromDisk } from './page-cache.js';
import { endMs, webAgent } from './web-store.js';

/** What a process has measured for a question, in milliseconds. */
export interface Asked {
  /** Time to open the archive and the agent, to start the threads, and for the warm-up. */
  readonly openMs: number;
  /** The first answer after opening. */
  readonly firstMs: number;
  /** Bytes that came from the disk for opening and for the first answer. */
  readonly diskBytes: number;
  /** Further answers; only where the first one is asked at once, as they would be the same. */
  readonly warmMs: readonly number[];
  /** Number of records in each answer. */
  readonly rows: number;
  readonly first: ScanStats;
  readonly warm: ScanStats;
}

/** When a question is asked, and whether it is repeated. */
export type When = 'repeatedly' | 'once';

/**
 * Runs that are not counted: at least so many, and more, up to the maximum, while they still read files: each keeps some more
 * pieces of filters in memory.
 */
const warmUpRuns = 5;
const warmUpRunsMax = 100;
/** Maximum number of runs that are counted, and the milliseconds for them. */
const runsMax = 50;
const budgetMs = 1000;

/** Asks a question as in a server, where the threads have been started and a few queries answered to warm up. */
async function ask(location: string, raw: string, when: When): Promise<Asked> {
  const { name } = webAgent(false);
  const diskBytesBefore = bytesFromDisk();
  const startMs = performance.now();
  const workers = new WorkerPool(workersDefault());
  const ready = beginThreads(workers);
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
  assert(store instanceof AgentStore, 'the archive is one of the engine');
  await warmUp(store.context.state, workers, new AbortController().signal);
  const openMs = performance.now() - startMs;
  const bounds = { timezone: 'UTC', limitMax: 1000, limitDefault: 100 };
  const once = async (): Promise<{ ms: number; rows: number; stats: ScanStats }> => {
    const askedMs = performance.now();
    const scan = await store.scan(parseQueryRequest(raw, { schema, now: endMs, ...bounds }));
    let rows = 0;
    for await (const piece of scan.lines) for (const byte of piece) if (byte === 10) rows++;
    return { ms: performance.now() - askedMs, rows, stats: scan.stats };
  };
  const first = await once();
  const diskBytes = bytesFromDisk() - diskBytesBefore;
  const warmMs: number[] = [];
  let last = first;
  if (when === 'repeatedly') {
    for (let i = 0; i < warmUpRuns || (last.stats.bytesRead > 0 && i < warmUpRunsMax); i++)
      last = await once();
    const beginMs = performance.now();
    do {
      last = await once();
      warmMs.push(last.ms);
    } while (warmMs.length < runsMax && performance.now() - beginMs < budgetMs);
  }
  await archive.close();
  await workers.close();
  const { ms: firstMs, rows, stats } = first;
  return { openMs, firstMs, diskBytes, warmMs, rows, first: stats, warm: last.stats };
}

const [location, raw, when] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await ask(location!, raw!, when as When)));
