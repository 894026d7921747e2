import { type Trouble, LogstrataError, orDeadline } from '../../engine/index.js';
import { ProblemError } from '../http/problem.js';
import type { Caller, ListenerGuard } from '../http/access.js';
import { hostsAsked } from '../http/request-check.js';
import { type ConsoleRoute, sendJson, type ConsoleRoutes, ConsoleRouter } from './console-router.js';
import type { ListenAddress } from '../../agents/definition/config.js';
import type { Certificate } from '../http/certificate.js';
import { formatAddress, formatUrl, isLoopback } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import { TrustedProxies } from '../http/client-address.js';
import { ViewerRoute } from './viewer-route.js';

/** Whether the server can answer queries and store records as it should. */
interface Readiness {
  /** Returns what is wrong with the archive; undefined until it is open. */
  troubles: (() => Promise<readonly Trouble[]>) | undefined;
  isStopping: boolean;
}

/** The reason where the server is starting or stopping; else null. It reveals nothing about the archive, so everybody may see it. */
function transitionOf({ troubles, isStopping }: Readiness): string | null {
  if (isStopping) return 'the server is shutting down';
  return troubles === undefined ? 'the archive is being opened' : null;
}

/** `GET /livez`: 200 while the process can answer. */
const livenessRoute: ConsoleRoute = {
  answer: (_request, response) => sendJson(response, { status: 'live' }),
};

/**
 * `GET /readyz`: 200 where the server can do all that it should, else 503 with the reasons, each with its agent where it concerns one.
 * Reasons may name agents and files, so a caller without a token for all agents gets those of its own agents, and learns that there are
 * others; a probe only needs the status.
 */
function readinessRoute(readiness: Readiness): ConsoleRoute {
  return {
    async answer(_request, response, _target, caller) {
      const reason = transitionOf(readiness);
      if (reason !== null) throw notReady([{ reason }]);
      const reasons = await readiness.troubles!();
      if (reasons.length === 0) return sendJson(response, { status: 'ready' });
      throw notReady(toldTo(caller, reasons));
    },
  };
}

const kept: Trouble = { reason: 'only a token for all agents may see the reason' };

function toldTo(caller: Caller, reasons: readonly Trouble[]): readonly Trouble[] {
  if (!caller.isLimited) return reasons;
  const own = reasons.filter(({ agent }) => agent !== undefined && caller.may(agent));
  return own.length === reasons.length ? own : [...own, kept];
}

function notReady(reasons: readonly Trouble[]): ProblemError {
  const detail = reasons.map(({ agent, reason }) => (agent === undefined ? reason : `${agent}: ${reason}`));
  return new ProblemError(503, detail.join('; '), {
    headers: { 'Retry-After': '1' },
    members: { reasons },
  });
}

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
  const readiness: Readiness = { troubles: undefined, isStopping: false };
  const router = new ConsoleRouter({
    hosts: hostsAsked(address.host, hosts),
    viewer: new ViewerRoute(),
    probes: { '/livez': livenessRoute, '/readyz': readinessRoute(readiness) },
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
      readiness.troubles = troubles;
    },
    stopping: () => void (readiness.isStopping = true),
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
