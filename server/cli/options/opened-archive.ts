import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { type AgentStore, type Archive, LogstrataError, type WorkerPool } from '../../../engine/index.js';
import { didYouMean, listNames } from '../../request/suggestion.js';
import { logRetention } from './retention.js';
import { logShipped, withFar } from './far-tier.js';
import { withObjects } from './object-storage.js';
import type { Settings } from './settings.js';
import { tell } from '../output/terminal.js';

/** How a command uses an archive. */
export interface ArchiveUse {
  readonly workers?: WorkerPool;
  /**
   * True for a command that runs until it is stopped. Background work (merging small segments, retention) is then done while it runs; other
   * commands must not be delayed by it.
   */
  readonly lasts?: boolean;
  /** Receives warnings and events while the archive is open; standard error by default. */
  readonly log?: Pick<CollectLog, 'info' | 'warn'>;
}

const standardErrorLog: Pick<CollectLog, 'info' | 'warn'> = {
  info: (_facts, message) => tell(`logstrata: ${message}`),
  warn: (_facts, message) => tell(`logstrata: warning: ${message}`),
};

/**
 * Opens the archive in the data folder, calls `run`, and closes the archive even if `run` fails. `role` names this process to others that
 * want the archive. `workers` are not closed. Throws `invalid` where the configuration makes this machine a reader; `not_found` in mode
 * `read` without a data folder.
 */
export async function withArchive<T>(
  settings: Settings,
  mode: 'read' | 'write',
  role: string,
  run: (archive: Archive) => Promise<T>,
  { workers, lasts = false, log = standardErrorLog }: ArchiveUse = {},
): Promise<T> {
  // Loading the engine takes longer than all else, so it is loaded only when it is needed: help and usage errors are shown without it.
  const { openArchive } = await import('../../../engine/index.js');
  const location = resolve(settings.dataFolder);
  const { reader } = settings.config.server;
  if (reader !== null) {
    const message = `this machine is a reader and stores no records: it queries the writer ${reader.writer} (server.reader). Run the command there`;
    throw new LogstrataError('invalid', message);
  }
  if (mode === 'read') requireData(location);
  return withFar(settings, async (far) =>
    withObjects(settings, mode === 'write', async (objects) => {
      const archive = await openArchive(location, {
        mode,
        role,
        objects,
        ...(far === undefined ? {} : { far }),
        ...(workers === undefined ? {} : { workers }),
        ...(settings.cacheBytes === null ? {} : { cacheBytes: settings.cacheBytes }),
        graceMs: settings.config.fileInput.graceMs,
        removalDelayMs: settings.config.server.queryTimeoutMs,
        zstdAfterMs: settings.config.storage.zstdAfterMs,
        ...(lasts ? { background: { threads: 1 } as const } : {}),
        anticipates: role === 'serve',
        alone: role === 'repair',
        onWarning: (message) => log.warn({}, message),
        // A command that runs retention itself prints the result itself.
        ...(lasts
          ? { onRetention: (event) => logRetention(log, event), onShipped: (event) => logShipped(log, event) }
          : {}),
      });
      try {
        return await run(archive);
      } finally {
        await archive.close();
      }
    }),
  );
}

/** Like `withArchive`, with a pool of worker threads that ends with it. By default there are as many threads as cores. */
export async function withWorkers<T>(
  settings: Settings,
  mode: 'read' | 'write',
  role: string,
  threads: number | undefined,
  run: (archive: Archive, workers: WorkerPool) => Promise<T>,
  opened: Omit<ArchiveUse, 'workers'> = {},
): Promise<T> {
  const { WorkerPool, workersDefault, bytesBeforeThreads } = await import('../../../engine/index.js');
  const workers = new WorkerPool(threads ?? workersDefault(), undefined, bytesBeforeThreads);
  try {
    return await withArchive(settings, mode, role, (archive) => run(archive, workers), {
      ...opened,
      workers,
    });
  } finally {
    await workers.close();
  }
}

/** Throws `not_found` where there is no data folder. Commands that only look at records must not create a folder with a mistyped name. */
export function requireData(location: string): void {
  if (existsSync(location)) return;
  const message = `the data folder ${location} is not there: load something first, or name another one with --data`;
  throw new LogstrataError('not_found', message, { path: location });
}

/** The agents that a command is for: the named one, or all in the archive. Throws `not_found` for one that has no records. */
export async function agentsOf(archive: Archive, name: string | undefined): Promise<string[]> {
  const known = await archive.agents();
  if (name !== undefined && !known.includes(name)) throw noRecords(name, known, archive.location);
  return name === undefined ? known : [name];
}

/** The stores of the agents that a command is for (`agentsOf`). */
export async function storesOf(archive: Archive, name: string | undefined): Promise<AgentStore[]> {
  const stores: AgentStore[] = [];
  for (const each of await agentsOf(archive, name)) stores.push(await archive.agent(each));
  return stores;
}

/** The error for an agent without records, whether or not it has an agent file. */
export function noRecords(name: string, known: readonly string[], where: string): LogstrataError {
  const there = known.length === 0 ? 'It is empty' : `There are records of ${listNames(known)}`;
  const message = `there are no records of an agent ${JSON.stringify(name)} in ${where}${didYouMean(name, known)}. ${there}`;
  return new LogstrataError('not_found', message);
}
