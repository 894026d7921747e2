import { defaultConfig } from '../../agents/definition/config.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { startConsole, type ConsoleOptions, type RunningConsole } from '../../server/console/console.js';
import { makeRoutes } from '../../server/console/routes.js';
import { HttpWriterClient } from '../../server/http/http-writer-client.js';
import { startServer, type RunningServer } from '../../server/route/server.js';

/** A server that writes, with its console, on free ports of this machine. */
export class WriterBed {
  private constructor(
    readonly server: RunningServer,
    readonly console: RunningConsole,
  ) {}

  static async start(
    agents: ReadonlyMap<string, AgentStore>,
    options: Pick<ConsoleOptions, 'guard' | 'certificate'> = {},
  ): Promise<WriterBed> {
    const server = await startServer({
      ...defaultConfig.server,
      listen: { host: '127.0.0.1', port: 0 },
      transport: 'node',
      lookup: (name) => agents.get(name),
      now: Date.now,
      log: () => {},
    });
    const address = { host: '127.0.0.1', port: 0 };
    const operators = await startConsole({
      address,
      hosts: [],
      clientTimeoutMs: 10_000,
      log: () => {},
      ...options,
    });
    const written = new Map(
      [...agents].map(([name, store]) => [name, { definition: { fields: store.schema.fields }, store }]),
    );
    const { route, admission } = server;
    const counts = { timezone: 'UTC', queryTimeoutMs: 10_000, now: Date.now };
    const figures = (): Promise<never> => Promise.reject(new Error('nobody asks for metrics'));
    operators.open(
      makeRoutes({ version: '1', agents: written, written, route, admission, counts, figures }),
      () => Promise.resolve([]),
    );
    return new WriterBed(server, operators);
  }

  door(): HttpWriterClient {
    return new HttpWriterClient({ address: this.console.address, token: null, ca: null });
  }

  async close(): Promise<void> {
    await this.server.close({ timeoutMs: 0 });
    await this.console.close({ timeoutMs: 0 });
  }
}
