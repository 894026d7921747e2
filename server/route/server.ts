import { LogstrataError, orDeadline } from '../../engine/index.js';
import { Admission } from '../pace/admission.js';
import { Followers } from '../follow/followers.js';
import type { Certificate } from '../http/certificate.js';
import { formatUrl } from '../http/listen.js';
import { NodeTransport } from '../http/node-transport.js';
import { QueryRoute } from './query-route.js';
import type { ServerOptions } from './server-options.js';
import { StoreLookup } from '../http/store-lookup.js';
import type { RequestHandler, Transport, TransportName } from '../http/transport.js';
import { loadUws } from '../http/uws-binary.js';
import { UwsTransport } from '../http/uws-transport.js';

/** A server that listens. */
export interface RunningServer {
  /** `http://host:port` or `https://host:port`, with the port that the server listens on. */
  readonly address: string;
  readonly transport: TransportName;
  /** The query route. Another listener may answer with it too; both share the slots of queries. */
  readonly route: QueryRoute;
  /** Gives the slots of queries. Other work of the process, such as counts, takes its slots here too. */
  readonly admission: Admission;
  /** Uses this certificate for new connections; open ones keep theirs. Only for a server that was started with a certificate. */
  renew(certificate: Certificate): void;
  /** Stops listening, answers 503 to new requests, lets answers under way end, and breaks those that have not ended after `timeoutMs`. */
  close(options: { readonly timeoutMs: number }): Promise<void>;
}

/**
 * Starts a server for the query route. Throws `invalid` for an address that it can't listen on, naming it, and `unsupported` for a
 * transport that does not load on this machine.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const admission = new Admission(options.queriesMax);
  const { host, port } = options.listen;
  const stores = new StoreLookup(options.lookup);
  const followers = new Followers({ ...options, lookup: stores.find });
  const route = new QueryRoute(options, admission, followers, stores);
  const transport = chooseTransport(options, (request, response) => void route.answer(request, response));
  const portTaken = await transport.listen(host, port);
  return {
    address: formatUrl(host, portTaken, options.certificate !== undefined),
    transport: transport.name,
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

function chooseTransport(options: ServerOptions, handler: RequestHandler): Transport {
  const { transport: choice, clientTimeoutMs, certificate } = options;
  const found = choice === 'node' ? undefined : certificate === undefined ? loadUws() : withoutRenewal;
  if (found !== undefined && 'uws' in found) return new UwsTransport(found.uws, handler);
  if (found === undefined || choice === 'auto')
    return new NodeTransport(handler, clientTimeoutMs, certificate);
  throw new LogstrataError(
    'unsupported',
    `the transport "uws" can't be used: ${found.whyNot}; use the transport "node", which works everywhere`,
  );
}

/**
 * Why TLS never uses uWebSockets.js: it reads a certificate when it begins to listen, and offers no way to change the certificate for
 * clients that send no host name. Listening again would reset connections that have just been made.
 */
const withoutRenewal = { whyNot: "uWebSockets.js can't load a renewed certificate while it runs" };
