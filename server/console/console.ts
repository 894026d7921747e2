import { LogstrataError, orDeadline, type Trouble } from '../../engine/index.js';
import type { ListenAddress } from '../../agents/definition/config.js';
import { formatAddress, isLoopback } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import type { ConsoleRoutes } from './console-route.js';
import { ConsoleRouter } from './console-router.js';
import { livenessRoute, ReadinessRoute } from './probe-routes.js';
import { Readiness } from './readiness.js';

export interface ConsoleOptions {
  readonly address: ListenAddress;
  /** Names besides `localhost`, in lowercase, that it is asked by. */
  readonly hosts: readonly string[];
  /** A client that takes nothing of its answer for this long is gone. */
  readonly clientTimeoutMs: number;
  /** For failures on our side, one sentence each. */
  readonly log: (message: string) => void;
}

/** The listener for operators, beside the public one with its single route. */
export interface RunningConsole {
  /** `http://host:port`, with the port that was taken. */
  readonly address: string;
  /**
   * The archive is open: from now on it answers these routes. Until then it answers the probes alone, and is not ready.
   *
   * @param troubles says what keeps the server from being ready
   */
  open(routes: ConsoleRoutes, troubles: () => Promise<readonly Trouble[]>): void;
  /** From now on it is not ready, and still answers. */
  stopping(): void;
  /** Stops listening, finishes what has begun, and breaks what has not ended after `timeoutMs`. Nothing happens the second time. */
  close(options: { readonly timeoutMs: number }): Promise<void>;
}

/**
 * Starts the console, before the archive is open. Throws `invalid` for an address that it may not have, or that can't be had, naming it; the
 * cause of the latter is the system's.
 */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { address, hosts, clientTimeoutMs, log } = options;
  checkConsoleAddress(address);
  const readiness = new Readiness();
  const probes = { '/livez': livenessRoute, '/readyz': new ReadinessRoute(readiness) };
  const router = new ConsoleRouter(hosts, probes, log);
  // It has few clients, so what every system has is enough.
  const transport = new NodeTransport(router.handle, clientTimeoutMs);
  const port = await transport.listen(address.host, address.port);
  return {
    address: `http://${formatAddress(address.host, port)}`,
    open: (routes, troubles) => {
      router.open(routes);
      readiness.open(troubles);
    },
    stopping: () => readiness.stop(),
    close: async ({ timeoutMs }) => {
      await orDeadline(transport.stop(), timeoutMs);
      await transport.destroy();
    },
  };
}

/** Throws `invalid` for an address where others than the users of this machine would reach the console, which asks nobody who they are. */
export function checkConsoleAddress({ host, port }: ListenAddress): void {
  if (isLoopback(host)) return;
  throw new LogstrataError(
    'invalid',
    `the console can't listen on ${formatAddress(host, port)}: it asks nobody who they are, so it listens on this machine alone ` +
      '(127.0.0.1:2112, [::1]:2112). Reach it from elsewhere through "ssh -L", or a proxy that asks for passwords',
  );
}
