import type { ConsoleSetting } from '../../../agents/definition/config.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { hasSystemCode, isLogstrataError } from '../../../engine/index.js';
import type { RunningConsole } from '../../console/console.js';
import { AgentsRoute } from '../../console/agents-route.js';
import { CountRoute, type CountOptions } from '../../console/count-route.js';
import { SchemaRoute } from '../../console/schema-route.js';
import type { ConsoleAgents } from '../../console/console-agent.js';
import type { ConsoleRoutes } from '../../console/console-route.js';
import type { RunningServer } from '../../route/server.js';
import type { Settings } from '../options/settings.js';

/**
 * Starts the console of a server, unless there is to be none. Where another process has its address, that is an error if somebody has asked
 * for it, and else a warning: a second server on a machine is no mistake.
 */
export async function openConsole(
  { config: { server } }: Settings,
  flag: ConsoleSetting | undefined,
  log: CollectLog,
): Promise<RunningConsole | undefined> {
  const address = flag ?? server.console;
  if (address === 'off') return undefined;
  const { startConsole } = await import('../../console/console.js');
  const { hosts, clientTimeoutMs } = server;
  try {
    return await startConsole({
      address,
      hosts,
      clientTimeoutMs,
      log: (message) => log.error({}, message),
    });
  } catch (error) {
    if (address.isAsked || !isLogstrataError(error) || !hasSystemCode(error.cause, 'EADDRINUSE')) throw error;
    log.warn({}, `there is no console: ${error.message}, with --console, or --console off`);
    return undefined;
  }
}

/** What the console answers once the archive is open. */
export function consoleRoutes(
  agents: ConsoleAgents,
  { route, admission }: RunningServer,
  options: CountOptions,
): ConsoleRoutes {
  return {
    '/api/query/': route,
    '/api/count/': new CountRoute(agents, admission, options),
    '/api/agents': new AgentsRoute(agents),
    '/api/schema/': new SchemaRoute(agents),
  };
}
