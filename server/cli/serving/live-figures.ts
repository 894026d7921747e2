import type { Collection } from '../../../agents/collect/collection.js';
import type { ServerSettings } from '../../../agents/definition/config.js';
import type { Archive, WorkerPool } from '../../../engine/index.js';
import type { ServerFigures, ThreadFigures } from '../../metrics/server-figures.js';
import type { Access } from '../../access/access.js';
import type { RunningServer } from '../../route/server.js';

/** A running server and the parts whose figures are collected. */
export interface LiveServer {
  readonly archive: Pick<Archive, 'figures' | 'troubles'>;
  readonly server: RunningServer;
  /** The threads of queries. */
  readonly workers: WorkerPool;
  /** Undefined where nothing is collected. */
  readonly collection: Collection | undefined;
  readonly access: Access;
  readonly version: string;
  readonly settings: ServerSettings;
}

/** Collects the current figures of a server. */
export async function liveFigures(live: LiveServer): Promise<ServerFigures> {
  const { archive, server, workers, collection, access, version, settings } = live;
  const { route, admission, transport } = server;
  const [figures, troubles] = await Promise.all([archive.figures(), archive.troubles()]);
  const compaction = { busy: figures.compactionThreadsBusy, waiting: 0, threads: 1 };
  return {
    version,
    transport,
    isReady: troubles.length === 0,
    archive: figures,
    queries: {
      tally: route.tally,
      slow: route.slow.count,
      ...admission.load,
      runningMax: settings.queriesMax,
    },
    collecting: collection?.status() ?? {},
    importing: collection?.importing() ?? {},
    attaching: collection?.attaching() ?? {},
    wrongTokens: { query: access.query.failures, console: access.console.failures },
    threads: {
      query: threadFigures(workers),
      compact: compaction,
      ...(collection === undefined ? {} : { collect: threadFigures(collection.workers) }),
    },
  };
}

function threadFigures({ busy, waiting, threads }: WorkerPool): ThreadFigures {
  return { busy, waiting, threads };
}
