import { resolve } from 'node:path';
import type { Collection } from '../../agents/collect/collection.js';
import type { ServerSettings, ListenAddress, ConsoleSetting } from '../../agents/definition/config.js';
import { type Archive, type WorkerPool, hasSystemCode, isLogstrataError } from '../../engine/index.js';
import type { ServerFigures, ThreadFigures } from '../console/metric.js';
import { Access, type ListenerGuard } from '../http/access.js';
import type { RunningServer } from '../route/server.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { isLoopback } from '../http/listen.js';
import type { Settings } from './options.js';
import type { OwnCertificate } from './certificates.js';
import { messageOf, type RereadCause, type Rereadable } from './rereading.js';
import type { RunningConsole } from '../console/console.js';
import type { WrittenAgents } from '../console/routes.js';
import type { ConsoleAgents } from '../console/console-router.js';

/** A running server and the parts whose figures are collected. */
interface LiveServer {
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
async function liveFigures(live: LiveServer): Promise<ServerFigures> {
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

/** Reads the tokens of the data folder. Throws where a token can't be read, as it might be a revoked one. */
export function openAccess({ dataFolder }: Settings, log: CollectLog): Promise<Access> {
  return Access.open(resolve(dataFolder), (message) => log.warn({}, message));
}

/** Reloads the tokens of a running server when they change. */
export class ChangedTokens implements Rereadable {
  readonly #access: Access;
  readonly #log: CollectLog;

  constructor(access: Access, log: CollectLog) {
    this.#access = access;
    this.#log = log;
  }

  fingerprint(): Promise<string> {
    return this.#access.fingerprint();
  }

  async reread(cause: RereadCause): Promise<void> {
    try {
      const tokens = await this.#access.reload();
      this.#log.info({ cause, tokens: tokens.length }, 'the tokens were reloaded');
    } catch (error) {
      this.#log.error({ cause }, `${messageOf(error)}: the tokens stay unchanged`);
    }
  }
}

/**
 * Warns where other machines can reach a listener and no token is needed, or where tokens and records are sent unencrypted. With trusted
 * proxies configured there is no warning: they are expected to provide both.
 */
export function warnOfOpenDoor(
  { host }: ListenAddress,
  guard: ListenerGuard,
  certificate: OwnCertificate | undefined,
  { config: { server } }: Settings,
  log: CollectLog,
): void {
  if (isLoopback(host) || server.trustedProxies.length > 0) return;
  if (!guard.isClosed)
    log.warn(
      { listen: host },
      'everybody who reaches this machine can query it: make a token ("logstrata token new"), or name the proxy that authenticates users in ' +
        'server.trusted_proxies',
    );
  else if (certificate === undefined)
    log.warn(
      { listen: host },
      'tokens and records cross the network unencrypted: set server.tls, or name the proxy in server.trusted_proxies',
    );
}

/** What the console needs to log, check tokens and use TLS. */
export interface ConsoleDoor {
  readonly log: CollectLog;
  readonly access: Access;
  /** Undefined where the console does not use TLS. */
  readonly certificate: OwnCertificate | undefined;
}

/**
 * Starts the console; returns undefined where it is off. Where its address is in use, this throws if the address was configured; for the
 * default address it only warns, as a second server on a machine is not a mistake.
 */
export async function openConsole(
  settings: Settings,
  flag: ConsoleSetting | undefined,
  { log, access, certificate }: ConsoleDoor,
): Promise<RunningConsole | undefined> {
  const { server } = settings.config;
  const address = flag ?? server.console;
  if (address === 'off') return undefined;
  const { startConsole } = await import('../console/console.js');
  const { hosts, trustedProxies, clientTimeoutMs } = server;
  try {
    const running = await startConsole({
      address,
      hosts,
      trustedProxies,
      clientTimeoutMs,
      guard: access.console,
      certificate: certificate?.current,
      log: (message) => log.error({}, message),
    });
    certificate?.isOf(running);
    warnOfOpenDoor(address, access.console, certificate, settings, log);
    return running;
  } catch (error) {
    if (address.isAsked || !isLogstrataError(error) || !hasSystemCode(error.cause, 'EADDRINUSE')) throw error;
    log.warn({}, `the console was not started: ${error.message}, with --console, or --console off`);
    return undefined;
  }
}

/** Adds the routes that need the open archive to the console. */
export async function openRoutes(
  { open }: RunningConsole,
  agents: ConsoleAgents,
  written: WrittenAgents | undefined,
  live: LiveServer,
): Promise<void> {
  const { makeRoutes } = await import('../console/routes.js');
  const { archive, server, settings } = live;
  const { route, admission } = server;
  const counts = { ...settings, now: Date.now };
  open(makeRoutes({ agents, written, route, admission, counts, figures: () => liveFigures(live) }), () =>
    archive.troubles(),
  );
}
