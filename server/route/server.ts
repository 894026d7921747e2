import { type AgentStore, LogstrataError, orDeadline } from '../../engine/index.js';
import type { CorsOrigin } from './cors.js';
import { Admission } from './admission.js';
import { TrustedProxies } from './client-address.js';
import { formatAddress, isLoopback } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import { QueryRoute } from './query-route.js';
import type { RequestHandler, Transport, TransportName } from '../http/transport.js';
import { loadUws } from '../http/uws-binary.js';
import { UwsTransport } from '../http/uws-transport.js';

/** `auto`: `uws` where it is installed and loads, else `node`. */
export type TransportChoice = 'auto' | TransportName;

export interface ServerOptions {
  /** No host, or an empty one: every interface. Port 0: any free one. */
  readonly listen: { readonly host?: string | undefined; readonly port: number };
  readonly transport: TransportChoice;
  /** The store of an agent, or undefined when there is no such agent (404). */
  readonly lookup: (agent: string) => AgentStore | undefined;
  /** `server.cors.origin`; undefined: off. */
  readonly corsOrigin?: CorsOrigin;
  /** Zone of absolute times without an offset. */
  readonly timezone: string;
  /** Largest `limit` that may be asked for. */
  readonly limitMax: number;
  /** Queries that may run at once; more are answered with 429. */
  readonly queriesMax: number;
  /** Time that the scan of one query may take, without the time that the client takes. */
  readonly queryTimeoutMs: number;
  /** Bytes a second that a client must take of its answer, over a minute of waiting for it; 0 for any. */
  readonly clientRateMin: number;
  /** Longest time from a request to the end of its answer. */
  readonly answerTimeoutMs: number;
  /** Proxies whose `X-Forwarded-For` names the client: addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** A client that takes nothing of its answer for this long is gone. uWebSockets.js has a time of its own. */
  readonly clientTimeoutMs: number;
  /** Names besides `localhost`, in lowercase, that the server is asked by. None: any, unless it listens on a loopback address. */
  readonly hosts: readonly string[];
  /** The clock for relative times, ms since the epoch. */
  readonly now: () => number;
  /** For failures on our side, one sentence each. */
  readonly log: (message: string) => void;
}

export interface RunningServer {
  /** `http://host:port`, with the port that was taken. */
  readonly address: string;
  readonly transport: TransportName;
  /** Why it is not uWebSockets.js, where that would have been taken. */
  readonly whyNotUws: string | undefined;
  /** Stops listening, answers 503 to new requests, finishes what has begun, and breaks what has not ended after `timeoutMs`. */
  close(options: { readonly timeoutMs: number }): Promise<void>;
}

/**
 * Serves the route. Throws `invalid` for an address that can't be had, naming it, and `unsupported` for a transport that does
 * not load here.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const admission = new Admission(options.queriesMax);
  const { host, port } = options.listen;
  const route = new QueryRoute(
    {
      ...options,
      corsOrigin: options.corsOrigin,
      proxies: new TrustedProxies(options.trustedProxies),
      hosts: isLoopback(host) || options.hosts.length > 0 ? options.hosts : null,
    },
    admission,
  );
  const { transport, whyNotUws } = chooseTransport(
    options,
    (request, response) => void route.answer(request, response),
  );
  const portTaken = await transport.listen(host, port);
  const isEverywhere = host === undefined || host === '' || host === '0.0.0.0' || host === '::';
  return {
    address: `http://${formatAddress(isEverywhere ? 'localhost' : host, portTaken)}`,
    transport: transport.name,
    whyNotUws,
    close: async ({ timeoutMs }) => {
      admission.stop();
      await orDeadline(transport.stop(), timeoutMs);
      await transport.destroy();
    },
  };
}

interface ChosenTransport {
  readonly transport: Transport;
  readonly whyNotUws: string | undefined;
}

function chooseTransport(
  { transport: choice, clientTimeoutMs }: ServerOptions,
  handler: RequestHandler,
): ChosenTransport {
  if (choice === 'node')
    return { transport: new NodeTransport(handler, clientTimeoutMs), whyNotUws: undefined };
  const found = loadUws();
  if ('uws' in found) return { transport: new UwsTransport(found.uws, handler), whyNotUws: undefined };
  const { whyNot } = found;
  if (choice === 'auto') return { transport: new NodeTransport(handler, clientTimeoutMs), whyNotUws: whyNot };
  throw new LogstrataError(
    'unsupported',
    `the transport "uws" can't be used: ${whyNot}; "node" can everywhere`,
  );
}
