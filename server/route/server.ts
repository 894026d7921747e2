import { LogstrataError, orDeadline } from '../../engine/index.js';
import { Admission } from '../pace/admission.js';
import { Followers } from '../follow/followers.js';
import type { Certificate } from '../http/certificate.js';
import { formatUrl } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import { QueryRoute } from './query-route.js';
import type { ServerOptions } from './server-options.js';
import type { RequestHandler, Transport, TransportName } from '../http/transport.js';
import { loadUws } from '../http/uws-binary.js';
import { UwsTransport } from '../http/uws-transport.js';

export interface RunningServer {
  /** `http://host:port`, or `https://`, with the port that was taken. */
  readonly address: string;
  readonly transport: TransportName;
  /** Why it is not uWebSockets.js, where that would have been taken. */
  readonly whyNotUws: string | undefined;
  /** What it answers, for another listener to answer as well: the two share the queries that run at once. */
  readonly route: QueryRoute;
  /** What gives it slots, for what else may take one. */
  readonly admission: Admission;
  /** New connections get this certificate; those that are open go on. Only where it was started with one. */
  renew(certificate: Certificate): void;
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
  const followers = new Followers(options);
  const route = new QueryRoute(options, admission, followers);
  const { transport, whyNotUws } = chooseTransport(
    options,
    (request, response) => void route.answer(request, response),
  );
  const portTaken = await transport.listen(host, port);
  return {
    address: formatUrl(host, portTaken, options.certificate !== undefined),
    transport: transport.name,
    whyNotUws,
    route,
    admission,
    renew: (certificate) => transport.renew?.(certificate),
    close: async ({ timeoutMs }) => {
      admission.stop();
      followers.stop();
      await orDeadline(transport.stop(), timeoutMs);
      await transport.destroy();
    },
  };
}

interface ChosenTransport {
  readonly transport: Transport;
  readonly whyNotUws: string | undefined;
}

function chooseTransport(options: ServerOptions, handler: RequestHandler): ChosenTransport {
  const { transport: choice, clientTimeoutMs, certificate } = options;
  const onNode = (whyNotUws?: string): ChosenTransport => ({
    transport: new NodeTransport(handler, clientTimeoutMs, certificate),
    whyNotUws,
  });
  if (choice === 'node') return onNode();
  const found = certificate === undefined ? loadUws() : withoutRenewal;
  if ('uws' in found) return { transport: new UwsTransport(found.uws, handler), whyNotUws: undefined };
  if (choice === 'auto') return onNode(found.whyNot);
  throw new LogstrataError(
    'unsupported',
    `the transport "uws" can't be used: ${found.whyNot}; "node" can everywhere`,
  );
}

/**
 * uWebSockets.js reads a certificate when it begins to listen, and has no way to give another to those who name no host. To listen anew
 * would reset who has just connected.
 */
const withoutRenewal = { whyNot: "uWebSockets.js can't take a renewed certificate while it runs" };
