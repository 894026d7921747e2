import { headersBytesMax, headersMax, requestLineBytesMax } from './http-limits.js';
import { ProblemError } from './problem.js';
import type { TransportRequest } from './transport.js';

/** A request line as it was sent, before anything but its form has been checked. */
export interface RequestLine {
  readonly method: string;
  /** One character a byte, all of them printable ASCII. */
  readonly target: string;
  /** `1.1`, …; `0.9` when the line names none. */
  readonly version: string;
}

/** A request's head as it was sent. */
export interface TakenHead {
  readonly line: RequestLine;
  /** The header lines, without the empty one behind them. */
  readonly headers: string;
  /** Bytes of the head, up to the request that follows. */
  readonly length: number;
}

/** A request's headers. They say nothing of the request itself, and are mostly the same for all of a connection. */
export interface Headers {
  /** Values by name in lowercase; of several lines joined. */
  readonly values: ReadonlyMap<string, string>;
  /** The client asks for the connection to be closed behind the response. */
  readonly closes: boolean;
  readonly hasBody: boolean;
}

export interface CheckedHead extends TransportRequest {
  /** The client asked for the connection to be closed behind the response. */
  readonly closes: boolean;
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const methodPattern = new RegExp(`^${token}(?: |$)`);
const requestLinePattern = new RegExp(`^(${token}) (\\S+)(?: HTTP/(\\d\\.\\d))?$`);
const tokenPattern = new RegExp(`^${token}$`);
const headerEnd = Buffer.from('\r\n\r\n');

/** A head that is refused before it is complete: the connection can't be used on. */
export function refusal(
  status: 400 | 405 | 414 | 431 | 505,
  detail: string,
  headers?: Record<string, string>,
): ProblemError {
  return new ProblemError(status, detail, { closes: true, headers });
}

/** Any version but HTTP/1.1: 505, at once. */
export function versionRefusal(version: string): ProblemError {
  return refusal(
    505,
    `HTTP/${version} is not answered, because over it a broken answer can't be told from a whole one; use HTTP/1.1`,
  );
}

/** A request line over its bound: 414. */
export function lineRefusal(): ProblemError {
  return refusal(414, `the request line is longer than ${requestLineBytesMax} bytes`);
}

/** Headers over their bounds: 431. */
export function headersRefusal(): ProblemError {
  return refusal(
    431,
    `the headers are longer than ${headersBytesMax} bytes or more than ${headersMax} lines`,
  );
}

/** RFC 9112, section 3: a request target is ASCII. uWebSockets.js would take more and node:http would not; both refuse it here. */
export function targetRefusal(): ProblemError {
  return refusal(
    400,
    'the request target must be percent-encoded ASCII (curl does that with -G --data-urlencode)',
  );
}

/**
 * Takes the first head out of what a connection has sent. Undefined when it is not complete yet.
 * Throws a `ProblemError` (400, 414, 431, 505) as soon as the bytes so far can't become a head that we answer: for an old
 * version when its line ends.
 */
export function takeHead(bytes: Buffer): TakenHead | undefined {
  // RFC 9112, section 2.2: an empty line before the request line is to be ignored.
  const start = bytes.length >= 2 && bytes[0] === 0x0d && bytes[1] === 0x0a ? 2 : 0;
  const lineEnd = bytes.indexOf(0x0a, start);
  if (lineEnd < 0) {
    checkUnendedLine(
      bytes.toString('latin1', start, Math.min(bytes.length, start + requestLineBytesMax + 1)),
    );
    return undefined;
  }
  if (lineEnd - start > requestLineBytesMax) throw lineRefusal();
  const line = parseRequestLine(bytes.toString('latin1', start, lineEnd));
  if (line.version !== '1.1') throw versionRefusal(line.version);
  // The line's own end may be half of the empty line that ends a head without headers.
  const end = bytes.indexOf(headerEnd, lineEnd - 1);
  const headersBytes = (end < 0 ? bytes.length : end) - lineEnd;
  if (headersBytes > headersBytesMax) throw headersRefusal();
  if (end < 0) return undefined;
  const text = end === lineEnd - 1 ? '' : bytes.toString('latin1', lineEnd + 1, end);
  return { line, headers: text, length: end + headerEnd.length };
}

function checkUnendedLine(line: string): void {
  const firstWord = /^[^ \r]*/.exec(line)![0];
  if (firstWord !== '' && !methodPattern.test(firstWord))
    throw refusal(400, 'this is not an HTTP/1.1 request');
  if (line.length > requestLineBytesMax) throw lineRefusal();
}

function parseRequestLine(line: string): RequestLine {
  const match = line.endsWith('\r') ? requestLinePattern.exec(line.slice(0, -1)) : null;
  if (match === null) {
    const version = / HTTP\/(\d+(?:\.\d+)?)\r?$/.exec(line)?.[1];
    if (version !== undefined && version !== '1.1') throw versionRefusal(version);
    throw refusal(400, 'the request line is malformed: expected "GET /path HTTP/1.1" and a CRLF');
  }
  const [, method, target, version] = match;
  if (!/^[!-~]+$/.test(target!)) throw targetRefusal();
  return { method: method!, target: target!, version: version ?? '0.9' };
}

/**
 * Takes header lines apart: names and values by turns. Throws a `ProblemError`: 400 for a malformed one, 431 for too many.
 */
export function parseHeaderLines(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\r\n');
  if (lines.length > headersMax) throw headersRefusal();
  const rawHeaders: string[] = [];
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0));
    const value = withoutBlanksAround(line, colon + 1);
    if (!tokenPattern.test(name) || hasControl(value))
      throw refusal(400, 'a header line is malformed: expected "Name: value" and a CRLF');
    rawHeaders.push(name, value);
  }
  return rawHeaders;
}

/** The part of a line from an index on, without blanks before and behind it. Linear, which a pattern with two runs of blanks is not. */
function withoutBlanksAround(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isBlank(line, start)) start++;
  while (end > start && isBlank(line, end - 1)) end--;
  return line.slice(start, end);
}

function isBlank(line: string, index: number): boolean {
  const code = line.charCodeAt(index);
  return code === 0x20 || code === 0x09;
}

/** A control character other than a tab, which no header value may have: a lone CR or LF is how requests are smuggled. */
function hasControl(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true;
  }
  return false;
}

/**
 * Reads headers, given as names and values by turns. Throws a `ProblemError`: 400 where Host is missing or there twice, 431 beyond
 * the bounds.
 */
export function readHeaders(rawHeaders: readonly string[]): Headers {
  if (rawHeaders.length > 2 * headersMax) throw headersRefusal();
  const values = new Map<string, string>();
  let bytes = 0;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const value = rawHeaders[i + 1]!;
    bytes += name.length + value.length + 4;
    const before = values.get(name);
    if (name === 'host' && before !== undefined) throw refusal(400, 'the header Host is given twice');
    values.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  if (bytes > headersBytesMax) throw headersRefusal();
  if (!values.has('host')) throw refusal(400, 'the header Host is missing, which HTTP/1.1 requires');
  return { values, closes: asksToClose(values), hasBody: hasBody(values) };
}

/**
 * What a complete head asks for. Throws a `ProblemError`: 505 for another version, 400 for a bad target or a request with a
 * body, 405 for a method that is not in `methods`, 414 beyond the bound. All of them close the connection.
 */
export function checkHead(line: RequestLine, headers: Headers, methods: readonly string[]): CheckedHead {
  if (line.version !== '1.1') throw versionRefusal(line.version);
  if (line.method.length + line.target.length > requestLineBytesMax) throw lineRefusal();
  if (!methods.includes(line.method)) throw methodRefusal(line.method, methods);
  if (headers.hasBody)
    throw refusal(400, 'a request with a body is not answered: put the query into the URL');
  const { rawPath, rawQuery } = splitTarget(line.target);
  return {
    method: line.method,
    rawPath,
    rawQuery,
    closes: headers.closes,
    header: (name) => headers.values.get(name),
  };
}

/** Another method than the route's: 405, with `Allow`. */
export function methodRefusal(method: string, methods: readonly string[]): ProblemError {
  const allow = methods.join(', ');
  return refusal(405, `${method} is not answered here: the interface is read-only (${allow})`, {
    Allow: allow,
  });
}

/** RFC 9112, section 6.3: a request has a body when one of these says so. `Content-Length: 0` is none. */
function hasBody(headers: ReadonlyMap<string, string>): boolean {
  if (headers.has('transfer-encoding')) return true;
  const length = headers.get('content-length');
  return length !== undefined && !/^0+$/.test(length);
}

function asksToClose(headers: ReadonlyMap<string, string>): boolean {
  const options = headers.get('connection') ?? '';
  return options.split(',').some((option) => option.trim().toLowerCase() === 'close');
}

/** RFC 9112, section 3.2: a server takes the absolute form too, and `*` for OPTIONS. */
function splitTarget(target: string): { rawPath: string; rawQuery: string } {
  const origin = target === '*' ? '/' : target.replace(/^https?:\/\/[^/?#]*/i, '');
  if (!/^(?:[/?]|$)/.test(origin)) throw refusal(400, 'the request target must begin with "/"');
  const question = origin.indexOf('?');
  const rawPath = question < 0 ? origin : origin.slice(0, question);
  return {
    rawPath: rawPath === '' ? '/' : rawPath,
    rawQuery: question < 0 ? '' : origin.slice(question + 1),
  };
}
