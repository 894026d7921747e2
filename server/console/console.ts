import { LogstrataError, orDeadline, type Trouble } from '../../engine/index.js';
import type { ListenAddress } from '../../agents/definition/config.js';
import type { ListenerGuard } from '../access/listener-guard.js';
import type { Certificate } from '../http/certificate.js';
import { formatAddress, formatUrl, isLoopback } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import { TrustedProxies } from '../request/client-address.js';
import { hostsAsked } from '../request/request-check.js';
import type { ConsoleRoutes } from './console-route.js';
import { ConsoleRouter } from './console-router.js';
import { livenessRoute, ReadinessRoute } from './probe-routes.js';
import { Readiness } from './readiness.js';

export interface ConsoleOptions {
  readonly address: ListenAddress;
  /** Names besides `localhost`, in lowercase, that it is asked by. */
  readonly hosts: readonly string[];
  /** Proxies whose `X-Forwarded-For` names the client. */
  readonly trustedProxies?: readonly string[];
  /** Tells who asks; without one everybody may, and others than the users of this machine must not reach it. */
  readonly guard?: ListenerGuard | undefined;
  /** Has it answer over TLS. */
  readonly certificate?: Certificate | undefined;
  /** A client that takes nothing of its answer for this long is gone. */
  readonly clientTimeoutMs: number;
  /** For failures on our side, one sentence each. */
  readonly log: (message: string) => void;
}

/** The listener for operators, beside the public one with its single route. */
export interface RunningConsole {
  /** `http://host:port`, or `https://`, with the port that was taken. */
  readonly address: string;
  /**
   * The archive is open: from now on it answers these routes. Until then it answers the probes alone, and is not ready.
   *
   * @param troubles says what keeps the server from being ready
   */
  open(routes: ConsoleRoutes, troubles: () => Promise<readonly Trouble[]>): void;
  /** New connections get this certificate; those that are open go on. Only where it was started with one. */
  renew(certificate: Certificate): void;
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
  const { address, hosts, trustedProxies = [], guard, certificate, clientTimeoutMs, log } = options;
  checkConsoleAddress(address, guard);
  const readiness = new Readiness();
  const router = new ConsoleRouter({
    hosts: hostsAsked(address.host, hosts),
    probes: { '/livez': livenessRoute, '/readyz': new ReadinessRoute(readiness) },
    guard,
    proxies: new TrustedProxies(trustedProxies),
    log,
  });
  // It has few clients, so what every system has is enough.
  const transport = new NodeTransport(router.handle, clientTimeoutMs, certificate);
  const port = await transport.listen(address.host, address.port);
  return {
    address: formatUrl(address.host, port, certificate !== undefined),
    renew: (renewed) => transport.renew(renewed),
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

/**
 * Throws `invalid` for an address where others than the users of this machine would reach the console, and nobody asks them for a token. Where
 * one is asked for, it will be for as long as the console listens there.
 */
export function checkConsoleAddress({ host, port }: ListenAddress, guard: ListenerGuard | undefined): void {
  if (isLoopback(host)) return;
  if (guard?.isClosed !== true)
    throw new LogstrataError(
      'invalid',
      `the console can't listen on ${formatAddress(host, port)}, where others reach it: there is no token for it yet. Make one with ` +
        '"logstrata token new --listener console", or have it listen on this machine alone (127.0.0.1:2112, [::1]:2112)',
    );
  guard.close();
}
