import type { Access } from '../../access/access.js';
import type { ConsoleSetting } from '../../../agents/definition/config.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { hasSystemCode, isLogstrataError } from '../../../engine/index.js';
import type { RunningConsole } from '../../console/console.js';
import type { WrittenAgents } from '../../console/border-route.js';
import type { ConsoleAgents } from '../../console/console-agent.js';
import type { Settings } from '../options/settings.js';
import { liveFigures, type LiveServer } from './live-figures.js';
import { warnOfOpenDoor } from './own-access.js';
import type { OwnCertificate } from './own-certificates.js';

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
  const { startConsole } = await import('../../console/console.js');
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
  const { makeRoutes } = await import('../../console/routes.js');
  const { archive, server, settings } = live;
  const { route, admission } = server;
  const counts = { ...settings, now: Date.now };
  open(makeRoutes({ agents, written, route, admission, counts, figures: () => liveFigures(live) }), () =>
    archive.troubles(),
  );
}
