import { openArchive, type ScanStats } from '../../engine/index.js';
import { parseQueryRequest } from '../../server/request/query-request.js';
import { endMs, webAgent } from './web-store.js';

/** What one process has measured of one question, in milliseconds. */
export interface Asked {
  /** From nothing open to an agent that can be asked. */
  readonly openMs: number;
  /** The first answer after opening. */
  readonly firstMs: number;
  /** Further ones. */
  readonly warmMs: readonly number[];
  /** Records of each answer. */
  readonly rows: number;
  readonly first: ScanStats;
  readonly warm: ScanStats;
}

/** Runs that do not count, and the most that count and the time for them. */
const warmUpRuns = 5;
const runsMax = 50;
const budgetMs = 1000;

async function ask(location: string, raw: string): Promise<Asked> {
  const { name, schema } = webAgent();
  const startMs = performance.now();
  const archive = await openArchive(location, {
    mode: 'write',
    role: 'bench',
    now: () => endMs,
    background: { threads: 0 },
  });
  const store = await archive.agent(name, schema);
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
  for (let i = 0; i < warmUpRuns; i++) await once();
  const warmMs: number[] = [];
  const beginMs = performance.now();
  let last;
  do {
    last = await once();
    warmMs.push(last.ms);
  } while (warmMs.length < runsMax && performance.now() - beginMs < budgetMs);
  await archive.close();
  return { openMs, firstMs: first.ms, warmMs, rows: first.rows, first: first.stats, warm: last.stats };
}

const [location, raw] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await ask(location!, raw!)));
