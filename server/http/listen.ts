import { type Server, isIPv6 } from 'node:net';
import { LogstrataError } from '../../engine/index.js';

/** An address as people write it, with IPv6 in brackets. */
export function formatAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The URL of a server that listens on `host`. If it listens on every address, the URL names `localhost`. */
export function formatUrl(host: string, port: number, isTls: boolean): string {
  const isEverywhere = host === '0.0.0.0' || host === '::';
  return `${isTls ? 'https' : 'http'}://${formatAddress(isEverywhere ? 'localhost' : host, port)}`;
}

/** Whether a server that listens on `host` can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** Listens, and returns the port. Throws `invalid` for an address that can't be listened on, naming it and the reason. */
export async function listenOn(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const address = formatAddress(host, port);
      reject(new LogstrataError('invalid', `can't listen on ${address}: ${describe(cause)}`, { cause }));
    });
    server.listen({ port, host }, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

function describe(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'EADDRINUSE':
      return 'another process uses this port (`ss -ltnp` shows which); stop it, or choose another port';
    case 'EACCES':
      return 'this user has no permission for this port; ports from 1024 on need none';
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'there is no host of this name';
    default:
      return cause.message;
  }
}

/** A name has at most 253 characters, followed by the port. */
const hostCharactersMax = 262;
const portMax = 65_535;

/**
 * The name or address in a Host header or in the authority of a URL, without the port and without the brackets of an IPv6 address.
 * Undefined for a text that is not valid by RFC 3986, section 3.2.2, and for an empty name, which no `http` URL may have.
 */
export function nameOfHost(host: string): string | undefined {
  if (host.length > hostCharactersMax) return undefined;
  if (host.startsWith('[')) {
    const end = host.indexOf(']');
    const address = host.slice(1, end);
    return end > 0 && !address.includes('%') && isIPv6(address) && isPort(host.slice(end + 1))
      ? address
      : undefined;
  }
  const colon = host.indexOf(':');
  const name = colon < 0 ? host : host.slice(0, colon);
  return isName(name) && isPort(colon < 0 ? '' : host.slice(colon)) ? name : undefined;
}

/** Whether a text is empty, or a colon and a port number. RFC 3986 allows a colon without digits. */
function isPort(text: string): boolean {
  return text === '' || (/^:\d{0,5}$/.test(text) && Number(text.slice(1)) <= portMax);
}

function isName(text: string): boolean {
  return /^(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/.test(text);
}

/** A connection as `OpenConnections` sees it. */
export interface OpenConnection {
  /** Address of the other end. */
  readonly address: string;
  /** Whether an answer is under way on it. */
  readonly isAnswering: boolean;
  destroy(): void;
}

/**
 * The open connections, at most `max` of them. When a new one exceeds that number, another is closed: of the address with the most
 * connections, the oldest one without an answer under way. So idle connections can't keep other clients out.
 */
export class OpenConnections<Connection extends OpenConnection> {
  /** By address, the oldest connection of each first. */
  readonly #byAddress = new Map<string, Set<Connection>>();
  #count = 0;

  constructor(private readonly max: number) {}

  /** Adds a connection. If that makes too many, destroys another one, or this one if no other can be spared. */
  add(connection: Connection): void {
    const { address } = connection;
    const connections = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, connections.add(connection));
    this.#count++;
    if (this.#count > this.max) (this.#dispensable() ?? connection).destroy();
  }

  /** Forgets a connection that has closed. Further calls do nothing. */
  remove(connection: Connection): void {
    const connections = this.#byAddress.get(connection.address);
    if (connections?.delete(connection) !== true) return;
    this.#count--;
    if (connections.size === 0) this.#byAddress.delete(connection.address);
  }

  *[Symbol.iterator](): Generator<Connection> {
    for (const connections of this.#byAddress.values()) yield* connections;
  }

  #dispensable(): Connection | undefined {
    const most = [...this.#byAddress.values()].reduce((a, b) => (b.size > a.size ? b : a));
    for (const connection of most) if (!connection.isAnswering) return connection;
    return undefined;
  }
}
