import { afterEach } from 'vitest';
import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { startServer, type RunningServer } from '../../server/route/server.js';
import type { ServerOptions } from '../../server/route/server-options.js';
import { defaultConfig } from '../../agents/definition/config.js';
import type { TransportName } from '../../server/http/transport.js';
import { loadUws } from '../../server/http/uws-binary.js';
import { describeUnless, unlessRequired } from '../needs.js';

const found = loadUws();
/** Why uWebSockets.js can't be tested here, or null. */
export const missingUws = unlessRequired('uws', 'whyNot' in found ? found.whyNot : null);

/** The same tests on each transport, whose name replaces `%s` in the title. */
export function describeOnTransports(title: string, tests: (transport: TransportName) => void): void {
  for (const transport of ['uws', 'node'] as const)
    describeUnless(transport === 'uws' ? missingUws : null, title.replace('%s', transport), () =>
      tests(transport),
    );
}

const running: RunningServer[] = [];
/** Log messages of the servers of a test. */
export const logged: string[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ timeoutMs: 0 })));
  logged.length = 0;
});

/** A server of a test on any free port, which is closed when the test ends. */
export async function serve(
  transport: TransportName,
  store: ReadableStore,
  options: Partial<ServerOptions> = {},
): Promise<RunningServer> {
  const server = await startTestServer(transport, store, options);
  running.push(server);
  return server;
}

/** The same, but closed by the caller. */
export function startTestServer(
  transport: TransportName,
  store: ReadableStore,
  options: Partial<ServerOptions> = {},
): Promise<RunningServer> {
  return startServer({
    ...defaultConfig.server,
    listen: { host: '127.0.0.1', port: 0 },
    transport,
    lookup: (agent) => (agent === 'nginx' ? store : undefined),
    limitMax: 1000,
    queriesMax: 4,
    clientRateMin: 0,
    hosts: ['x', 'test'],
    now: () => Date.UTC(2026, 0, 15),
    log: (message) => logged.push(message),
    ...options,
  });
}
