import type { ConsoleSetting, ListenAddress } from '../../agents/definition/config.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import type { ReadableStore } from '../../engine/index.js';
import type { Access } from '../http/access.js';
import type { RunningConsole } from '../console/console.js';
import type { AgentsByName } from '../route/query-route.js';
import type { RunningServer } from '../route/server.js';
import type { TransportChoice } from '../route/server-options.js';
import type { SlowQuery } from '../route/query-tally.js';
import type { ServiceManager } from '../http/service-manager.js';
import type { GlobalFlags, Settings } from './options.js';
import type { StopSignals } from './stoppable.js';
import type { LogLevel } from './failure.js';
import { warnOfOpenDoor } from './listeners.js';
import type { OwnCertificates } from './certificates.js';

/** The options of the commands that start a server. */
export interface ServeFlags extends GlobalFlags {
  readonly listen?: ListenAddress;
  readonly console?: ConsoleSetting;
  readonly transport?: TransportChoice;
  readonly workers?: number;
  /** Whether to collect the agents' logs as well. */
  readonly follow: boolean;
  readonly logLevel: LogLevel;
}

/** Milliseconds that the server waits for running responses when it is stopped. A second signal ends it at once. */
const stopTimeoutMs = 30_000;

/** The parts of a running server. */
export interface ServeRun {
  readonly settings: Settings;
  readonly flags: ServeFlags;
  readonly signals: StopSignals;
  readonly log: CollectLog;
  readonly access: Access;
  readonly certificates: OwnCertificates;
  /** Undefined where the console is off. */
  readonly ownConsole: RunningConsole | undefined;
  readonly manager: ServiceManager;
}

/** Starts the query listener for the agents of an open archive. */
export async function startAnswering(
  served: AgentsByName<{ readonly store: ReadableStore }>,
  { settings, flags, log, access, certificates }: ServeRun,
): Promise<RunningServer> {
  const { startServer } = await import('../route/server.js');
  const { server } = settings.config;
  const listen = flags.listen ?? server.listen;
  const certificate = certificates.query;
  const running = await startServer({
    ...server,
    listen,
    guard: access.query,
    ...(certificate === undefined ? {} : { certificate: certificate.current }),
    transport: flags.transport ?? 'auto',
    lookup: (name) => served.get(name)?.store,
    leftOut: served.leftOut,
    now: Date.now,
    log: (message) => log.error({}, message),
    onSlow: (query) => logSlowQuery(log, query),
  });
  certificate?.isOf(running);
  warnOfOpenDoor(listen, access.query, certificate, settings, log);
  return running;
}

/** Logs a slow query in one line. */
function logSlowQuery(log: CollectLog, { timeMs, parameters, figures, ...query }: SlowQuery): void {
  const asked = { asked: new Date(timeMs).toISOString(), query: parameters.join('&') };
  log.warn({ ...asked, ...query, ...figures }, 'a query was slow');
}

/** The line about the query listener. */
export function describeServer({ address, transport, whyNotUws }: RunningServer): string {
  const why = whyNotUws === undefined ? '' : `: ${whyNotUws}`;
  return `serving  ${address}/api/query/<agent>  (${transport}${why})`;
}

/** The line about the console; none where it is off. */
export function describeConsole(ownConsole: RunningConsole | undefined): string[] {
  return ownConsole === undefined ? [] : [`console  ${ownConsole.address}`];
}

/** Waits for a stop signal, then lets the listeners finish the running responses. */
export async function stopWhenTold(
  server: RunningServer,
  { signals, log, ownConsole, manager }: ServeRun,
): Promise<void> {
  if (!signals.signal.aborted) {
    await new Promise<void>((done) => signals.signal.addEventListener('abort', () => done(), { once: true }));
  }
  log.info(
    { signal: signals.received ?? null },
    'stopping after the answers under way (signal again to stop at once)',
  );
  manager.stopping('stopping after the answers under way');
  const endMs = performance.now() + stopTimeoutMs;
  // The console is closed last: until then its readiness probe answers that the server is stopping.
  ownConsole?.stopping();
  await server.close({ timeoutMs: stopTimeoutMs });
  await ownConsole?.close({ timeoutMs: Math.max(0, endMs - performance.now()) });
  signals.obeyed();
}
