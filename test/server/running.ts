import { afterEach } from 'vitest';
import type { ReadableStore } from '../../engine/archive/archive.js';
import { startServer } from '../../server/route/server.js';
import type { RunningServer } from '../../server/route/server.js';
import type { ServerOptions } from '../../server/route/server-options.js';
import { defaultConfig } from '../../agents/definition/config.js';
import type { TransportName } from '../../server/http/transport.js';
import { loadUws } from '../../server/http/uws-binary.js';

/** All transports that this machine can run. */
export const transports: TransportName[] = 'uws' in loadUws() ? ['uws', 'node'] : ['node'];

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
