import { isIP } from 'node:net';
import { nameOfHost, isLoopback } from './listen.js';
import { requestLineBytesMax } from './http-limits.js';
import { ProblemError } from './problem.js';
import type { TransportRequest } from './transport.js';

/** The path and query string of a request that has passed `checkRequest`, percent-encoded. */
export interface RequestTarget {
  readonly rawPath: string;
  readonly rawQuery: string;
}

/** What `checkRequest` accepts. */
export interface CheckRules {
  readonly methods: readonly string[];
  /** Host names besides `localhost`, in lowercase, by which the server may be asked; null if any name is accepted. */
  readonly hosts: readonly string[] | null;
}

/** `CheckRules.hosts` of a server that listens on `host`: `hosts`, or any name if `hosts` is empty and `host` is not loopback. */
export function hostsAsked(host: string, hosts: readonly string[]): CheckRules['hosts'] {
  return isLoopback(host) || hosts.length > 0 ? hosts : null;
}

/**
 * Checks everything about a request but its query: what transports do not check. Throws a `ProblemError` that closes the connection: 505
 * for a version other than HTTP/1.1 and 1.0, 405 for another method, 400 for a body, a bad Host or a bad target, 414 for a target that is
 * too long. For a wrong host name the problem is 421, and the connection stays open.
 */
export function checkRequest(request: TransportRequest, { methods, hosts }: CheckRules): RequestTarget {
  const { method, version, rawPath, rawQuery } = request;
  if (version !== '1.1' && version !== '1.0')
    throw refusal(505, `HTTP/${version} is not supported; use HTTP/1.1`);
  if (!methods.includes(method)) throw methodRefusal(method, methods);
  if (hasBody(request)) throw refusal(400, 'a request must not have a body: put the query into the URL');
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

/** A problem after which the connection is closed, because what follows on it can't be trusted. */
function refusal(
  status: 400 | 405 | 414 | 505,
  detail: string,
  headers?: Record<string, string>,
): ProblemError {
  return new ProblemError(status, detail, { closes: true, headers });
}

/**
 * Whether a text has only characters that a request target may have: ASCII without blanks and without a fragment (RFC 9112, section 3.2).
 * Both HTTP libraries accept more, and interpret it differently.
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

/** The problem (405, with `Allow`) of a method that is not answered. */
function methodRefusal(method: string, methods: readonly string[]): ProblemError {
  const allow = methods.join(', ');
  return refusal(405, `${method} is not allowed here: the interface is read-only (${allow})`, {
    Allow: allow,
  });
}

/** Whether a request has a body: one of these headers says so (RFC 9112, section 6.3). `Content-Length: 0` means no body. */
function hasBody(request: TransportRequest): boolean {
  if (request.header('transfer-encoding') !== undefined) return true;
  const length = request.header('content-length');
  return length !== undefined && !/^0+$/.test(length);
}

/**
 * Checks that a request has exactly one valid Host (RFC 9112, section 3.2). Transports join several of them by a comma and a blank, which
 * no valid Host contains, so several are refused too.
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
 * Refuses host names that are not the server's own. A web page can make its own host name resolve to this machine (DNS rebinding) and then
 * read the answers, but the browser always sends that host name. IP addresses are accepted: no web page can own one as a name.
 */
function checkName(name: string, hosts: CheckRules['hosts']): void {
  if (hosts === null || isIP(name) !== 0) return;
  const asked = name.toLowerCase();
  if (asked === 'localhost' || hosts.includes(asked)) return;
  throw new ProblemError(
    421,
    `${JSON.stringify(name)} is not a known name of this server: list it in server.hosts of its configuration, or use its address`,
  );
}

/** The target of a request that does not begin with `/`: an absolute URL, whose host replaces Host, or `*` (RFC 9112, section 3.2). */
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
