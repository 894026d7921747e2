/**
 * The engine's only door: open an archive, append, load, scan, maintain. It knows no HTTP, no YAML and no regular
 * expression of a log line.
 */
export { openArchive } from './storage/archive-folder.js';
export type { OpenOptions } from './storage/open-options.js';
export { WorkerPool, workersDefault } from './workers/worker-pool.js';
export type {
  AgentStore,
  AppendResult,
  Archive,
  CompactOptions,
  CompactResult,
  Damage,
  KnownSources,
  Scan,
  ScanOptions,
  StoreStats,
  VerifyOptions,
  VerifyReport,
} from './archive.js';
