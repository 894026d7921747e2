import { newScanStats } from '../../engine/scan/answer.js';
import type { ServerFigures } from '../../server/console/metric.js';
import { QueryTally } from '../../server/route/query-tally.js';

const segments = { files: 2, bytes: 4096 };
const compaction = {
  rewrites: 1,
  failed: 0,
  segmentsRead: 3,
  segmentsWritten: 1,
  bytesRead: 9000,
  bytesWritten: 8000,
};

/** The figures of a server with a value for everything, for `agents` agents. */
export function sampleFigures(agents = 1): ServerFigures {
  const tally = new QueryTally();
  for (const status of [200, 400, 404]) tally.answered(status, 3);
  const names = Array.from({ length: agents }, (_, i) => `agent-${i}`);
  for (const name of names) tally.scanned(name, { ...newScanStats(), rowsScanned: 10 }, 1000);
  return {
    version: '1.2.3',
    transport: 'node',
    isReady: true,
    archive: {
      agents: names.map((agent) => ({
        agent,
        isDamaged: false,
        records: 100,
        segments: { lz4: segments, zstd: segments },
        hotRecords: 5,
        hotBytes: 500,
        rejectedBytes: 50,
        attachedFiles: 0,
        attachedRecords: 0,
        counters: { records: 100, rejected: 3, unreadableValues: 2, replacedBytes: 1, inputBytes: 10_000 },
        retired: { records: 7, bytes: 700, segments: 1, below: 1 },
        commits: { done: 9, failed: 1 },
        compaction,
        farRecords: 40,
        farOnlyRecords: 30,
        farLeftovers: 1,
        shipping: { shipped: 2, rows: 40, bytes: 4000, failed: 1 },
      })),
      pool: { bytes: 10, bytesMax: 100, pinnedBytes: 1, evictions: 4 },
      compactionThreadsBusy: 1,
      disk: { sizeBytes: 1e12, freeBytes: 5e11 },
    },
    queries: { tally, slow: 1, running: 1, waiting: 0, answers: 2, runningMax: 64 },
    collecting: Object.fromEntries(names.map((name) => [name, collecting])),
    importing: Object.fromEntries(names.slice(0, 1).map((name) => [name, importing])),
    attaching: {},
    wrongTokens: { query: 2, console: 0 },
    threads: { query: { busy: 1, waiting: 2, threads: 4 } },
  };
}

const collecting = {
  records: 100,
  bytes: 10_000,
  nulBytes: 0,
  skippedLines: 0,
  maskedTexts: 0,
  rejected: 5,
  notKept: 1,
  rejectedByReason: {
    'does not match the pattern': 2,
    'is not a JSON object: expected "{" at byte N': 2,
    'is not a JSON object: expected a value at byte N': 1,
  },
  commits: 4,
  lastCommitMs: 1_700_000_000_500,
  rotations: 0,
  truncations: 0,
  truncatedBytes: 0,
  files: [
    { path: '/a', role: 'followed', offset: 1, lagBytes: 0, records: 1, rejected: 0, failure: null },
    { path: '/b', role: 'followed', offset: 1, lagBytes: 0, records: 1, rejected: 0, failure: 'no right' },
  ],
  lagBytes: 12,
  paused: null,
};

const importing = {
  files: 3,
  bytes: 300,
  filesLeft: 1,
  bytesLeft: 100,
  filesWaiting: 0,
  records: 10,
  rejected: 0,
  path: null,
  msLeft: null,
  paused: null,
  problems: 2,
  problemsListed: [],
};
