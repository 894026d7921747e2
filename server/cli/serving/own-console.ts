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

/** Who may ask the console, and over what. */
export interface ConsoleDoor {
  readonly log: CollectLog;
  readonly access: Access;
  /** Undefined where it answers without TLS. */
  readonly certificate: OwnCertificate | undefined;
}

/**
 * Starts the console of a server, unless there is to be none. Where another process has its address, that is an error if somebody has asked
 * for it, and else a warning: a second server on a machine is no mistake.
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
    log.warn({}, `there is no console: ${error.message}, with --console, or --console off`);
    return undefined;
  }
}

/** Has the console answer for an open archive. */
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
