import { isIP } from 'node:net';
import { nameOfHost } from '../http/host.js';
import { requestLineBytesMax } from '../http/http-limits.js';
import { isLoopback } from '../http/listen.js';
import { ProblemError } from '../http/problem.js';
import type { TransportRequest } from '../http/transport.js';

/** The path and query string of a request that is answered here. */
export interface RequestTarget {
  readonly rawPath: string;
  readonly rawQuery: string;
}

/** What a server goes by when it checks a request. */
export interface CheckRules {
  readonly methods: readonly string[];
  /** Names besides `localhost`, in lowercase, that the server is asked by; null: any. */
  readonly hosts: readonly string[] | null;
}

/** The names that a server is asked by which listens on `host`, and is given `hosts` besides `localhost`: see `CheckRules.hosts`. */
export function hostsAsked(host: string, hosts: readonly string[]): CheckRules['hosts'] {
  return isLoopback(host) || hosts.length > 0 ? hosts : null;
}

/**
 * Checks what the transports let through, and what is not meant for the query itself. Throws a `ProblemError` that closes the
 * connection: 505 for another version than HTTP/1.1 and 1.0, 405 for another method, 400 for a request with a body, a bad Host or a bad
 * target, 414 for a long one; and 421, which does not, for another host.
 */
export function checkRequest(request: TransportRequest, { methods, hosts }: CheckRules): RequestTarget {
  const { method, version, rawPath, rawQuery } = request;
  if (version !== '1.1' && version !== '1.0')
    throw refusal(505, `HTTP/${version} is not answered; use HTTP/1.1`);
  if (!methods.includes(method)) throw methodRefusal(method, methods);
  if (hasBody(request))
    throw refusal(400, 'a request with a body is not answered: put the query into the URL');
  const host = request.header('host');
  if (host !== undefined || version === '1.1') checkHost(host, hosts);
  if (rawPath.length + rawQuery.length > requestLineBytesMax)
    throw refusal(414, `the request line is longer than ${requestLineBytesMax} bytes`);
  if (!isVisible(rawPath) || !isVisible(rawQuery))
    throw refusal(
      400,
      'the request target has a character that must be escaped as "%XX": one that is not ASCII, a blank or a "#"',
    );
  return rawPath.startsWith('/') ? { rawPath, rawQuery } : withoutAuthority(rawPath, rawQuery, hosts);
}

/** A head that is refused: the connection can't be used on. */
function refusal(
  status: 400 | 405 | 414 | 505,
  detail: string,
  headers?: Record<string, string>,
): ProblemError {
  return new ProblemError(status, detail, { closes: true, headers });
}

/**
 * RFC 9112, section 3.2: a request target is ASCII without blanks, and has no fragment. Both libraries take more, and read it differently.
 */
function isVisible(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= blank || code >= deleteCode || code === numberSign) return false;
  }
  return true;
}

const blank = 0x20;
const numberSign = 0x23;
const deleteCode = 0x7f;

/** Another method than the route's: 405, with `Allow`. */
function methodRefusal(method: string, methods: readonly string[]): ProblemError {
  const allow = methods.join(', ');
  return refusal(405, `${method} is not answered here: the interface is read-only (${allow})`, {
    Allow: allow,
  });
}

/** RFC 9112, section 6.3: a request has a body when one of these says so. `Content-Length: 0` is none. */
function hasBody(request: TransportRequest): boolean {
  if (request.header('transfer-encoding') !== undefined) return true;
  const length = request.header('content-length');
  return length !== undefined && !/^0+$/.test(length);
}

/**
 * RFC 9112, section 3.2: a request has one Host, and that is one. Several of them have been joined by a comma and a blank, which none has.
 */
function checkHost(host: string | undefined, hosts: CheckRules['hosts']): void {
  if (host === undefined) throw refusal(400, 'the header Host is missing, which HTTP/1.1 requires');
  const name = nameOfHost(host);
  if (name === undefined)
    throw refusal(
      400,
      `the header Host must be one name or address, with or without a port, not ${JSON.stringify(host)}`,
    );
  checkName(name, hosts);
}

/**
 * A page in a browser can have a name of its own lead to this machine (DNS rebinding), and then read what it answers. It can't have the
 * browser send another name than that, so no name but the server's own is answered. Addresses are nobody's name.
 */
function checkName(name: string, hosts: CheckRules['hosts']): void {
  if (hosts === null || isIP(name) !== 0) return;
  const asked = name.toLowerCase();
  if (asked === 'localhost' || hosts.includes(asked)) return;
  throw new ProblemError(
    421,
    `${JSON.stringify(name)} is no name of this server: list it in server.hosts of its configuration, or ask by an address`,
  );
}

/** RFC 9112, section 3.2: a server takes the absolute form too, whose host replaces that of Host, and `*` for OPTIONS. */
function withoutAuthority(rawPath: string, rawQuery: string, hosts: CheckRules['hosts']): RequestTarget {
  if (rawPath === '*') return { rawPath: '/', rawQuery };
  const scheme = /^https?:\/\//i.exec(rawPath)?.[0];
  if (scheme === undefined) throw refusal(400, 'the request target must begin with "/"');
  const slash = rawPath.indexOf('/', scheme.length);
  const host = rawPath.slice(scheme.length, slash < 0 ? undefined : slash);
  const name = nameOfHost(host);
  if (name === undefined) throw refusal(400, `the request target names no host: ${JSON.stringify(host)}`);
  checkName(name, hosts);
  return { rawPath: slash < 0 ? '/' : rawPath.slice(slash), rawQuery };
}
