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
import { ViewerRoute } from './viewer-route.js';

/** The options of the console. */
export interface ConsoleOptions {
  readonly address: ListenAddress;
  /** Host names besides `localhost`, in lowercase, that are accepted. */
  readonly hosts: readonly string[];
  /** Addresses of proxies whose header `X-Forwarded-For` is trusted to name the client. */
  readonly trustedProxies?: readonly string[];
  /** Checks tokens. Without it everybody is let in, so only users of this machine may be able to reach the console. */
  readonly guard?: ListenerGuard | undefined;
  /** With a certificate the console uses TLS. */
  readonly certificate?: Certificate | undefined;
  /** Milliseconds after which a client that takes nothing of its response is disconnected. */
  readonly clientTimeoutMs: number;
  /** Called with one sentence for each internal failure. */
  readonly log: (message: string) => void;
}

/** The running console, which is the listener for operators beside the public query listener. */
export interface RunningConsole {
  /** `http://host:port` or `https://host:port`, with the actual port. */
  readonly address: string;
  /**
   * Says that the archive is open: from now on the console answers `routes`. Until then it answers only the probes, as not ready, and the
   * page, which waits.
   *
   * @param troubles returns what keeps the server from being ready
   */
  open(routes: ConsoleRoutes, troubles: () => Promise<readonly Trouble[]>): void;
  /** Uses this certificate for new connections; open ones continue. Only allowed where the console was started with a certificate. */
  renew(certificate: Certificate): void;
  /** Makes the readiness probe answer that the server is stopping. All else is still answered. */
  stopping(): void;
  /**
   * Stops listening, waits for responses that have begun, and closes the connections that are left after `timeoutMs`. Calling it again has
   * no effect.
   */
  close(options: { readonly timeoutMs: number }): Promise<void>;
}

/**
 * Starts the console, before the archive is open. Throws `invalid`, with the address, where the address is not allowed
 * (`checkConsoleAddress`) or can't be listened on; the system's error is the cause then.
 */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { address, hosts, trustedProxies = [], guard, certificate, clientTimeoutMs, log } = options;
  checkConsoleAddress(address, guard);
  const readiness = new Readiness();
  const router = new ConsoleRouter({
    hosts: hostsAsked(address.host, hosts),
    viewer: new ViewerRoute(),
    probes: { '/livez': livenessRoute, '/readyz': new ReadinessRoute(readiness) },
    guard,
    proxies: new TrustedProxies(trustedProxies),
    log,
  });
  // Node's HTTP server, which runs on every system, is fast enough for the few clients of a console.
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
 * Throws `invalid` where users of other machines would reach the console and no token is needed. Where one is needed, makes the guard ask
 * for tokens from now on, even if all of them are removed.
 */
export function checkConsoleAddress({ host, port }: ListenAddress, guard: ListenerGuard | undefined): void {
  if (isLoopback(host)) return;
  if (guard?.isClosed !== true)
    throw new LogstrataError(
      'invalid',
      `the console can't listen on ${formatAddress(host, port)}, which other machines can reach, without a token. Make one with ` +
        '"logstrata token new --listener console", or let it listen only on this machine (127.0.0.1:2112, [::1]:2112)',
    );
  guard.close();
}
