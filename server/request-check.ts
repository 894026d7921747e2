import { nameOfHost } from './host.js';
import { requestLineBytesMax } from './http-limits.js';
import { ProblemError } from './problem.js';
import type { TransportRequest } from './transport.js';

/** The path and query string of a request that is answered here. */
export interface RequestTarget {
  readonly rawPath: string;
  readonly rawQuery: string;
}

/**
 * Checks what the transports let through, and neither is meant for the query itself. Throws a `ProblemError` that closes the connection:
 * 505 for another version than HTTP/1.1, 405 for a method that is not in `methods`, 400 for a request with a body, a bad Host or a bad
 * target, 414 for a long one.
 */
export function checkRequest(request: TransportRequest, methods: readonly string[]): RequestTarget {
  if (request.version !== '1.1') throw versionRefusal(request.version);
  const { method } = request;
  if (!methods.includes(method)) throw methodRefusal(method, methods);
  if (hasBody(request))
    throw refusal(400, 'a request with a body is not answered: put the query into the URL');
  checkHost(request.header('host'));
  const { rawPath, rawQuery } = request;
  if (rawPath.length + rawQuery.length > requestLineBytesMax)
    throw refusal(414, `the request line is longer than ${requestLineBytesMax} bytes`);
  if (!isVisible(rawPath) || !isVisible(rawQuery))
    throw refusal(400, 'the request target has characters other than those of ASCII: escape them as "%XX"');
  return rawPath.startsWith('/') ? { rawPath, rawQuery } : withoutAuthority(rawPath, rawQuery);
}

/** A head that is refused: the connection can't be used on. */
function refusal(
  status: 400 | 405 | 414 | 505,
  detail: string,
  headers?: Record<string, string>,
): ProblemError {
  return new ProblemError(status, detail, { closes: true, headers });
}

function versionRefusal(version: string): ProblemError {
  return refusal(
    505,
    `HTTP/${version} is not answered, because over it a broken answer can't be told from a whole one; use HTTP/1.1`,
  );
}

/** RFC 9112, section 3: a request target is ASCII without blanks. Both libraries take more, and read it differently. */
function isVisible(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 0x20 || code >= 0x7f) return false;
  }
  return true;
}

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
function checkHost(host: string | undefined): void {
  if (host === undefined) throw refusal(400, 'the header Host is missing, which HTTP/1.1 requires');
  if (nameOfHost(host) === undefined)
    throw refusal(
      400,
      `the header Host must be one name or address, with or without a port, not ${JSON.stringify(host)}`,
    );
}

/** RFC 9112, section 3.2: a server takes the absolute form too, and `*` for OPTIONS. */
function withoutAuthority(rawPath: string, rawQuery: string): RequestTarget {
  if (rawPath === '*') return { rawPath: '/', rawQuery };
  const scheme = /^https?:\/\//i.exec(rawPath)?.[0];
  if (scheme === undefined) throw refusal(400, 'the request target must begin with "/"');
  const slash = rawPath.indexOf('/', scheme.length);
  const host = rawPath.slice(scheme.length, slash < 0 ? undefined : slash);
  if (nameOfHost(host) === undefined)
    throw refusal(400, `the request target names no host: ${JSON.stringify(host)}`);
  return { rawPath: slash < 0 ? '/' : rawPath.slice(slash), rawQuery };
}
