import { type ErrorCode, isLogstrataError, LogstrataError } from '../../engine/index.js';

/** Every status other than 200, 204 and 304 that the route answers with. */
export type ProblemStatus = 400 | 401 | 403 | 404 | 405 | 409 | 414 | 421 | 429 | 431 | 500 | 503 | 504 | 505;

/** The title of each status: its reason phrase. */
export const problemTitles: Readonly<Record<ProblemStatus, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  414: 'URI Too Long',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};

const codes: Readonly<Record<ProblemStatus, ErrorCode>> = {
  400: 'invalid',
  401: 'invalid',
  403: 'invalid',
  404: 'not_found',
  405: 'invalid',
  409: 'conflict',
  414: 'limit',
  421: 'invalid',
  429: 'limit',
  431: 'limit',
  500: 'io',
  503: 'closed',
  504: 'timeout',
  505: 'unsupported',
};

export interface ProblemExtras {
  /** The query parameter at fault, as the client wrote it (decoded). */
  readonly parameter?: string | undefined;
  /** Headers that belong to the status: `Allow`, `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The connection must not be used for another request. */
  readonly closes?: boolean | undefined;
  /** Further members of the body: extension members of RFC 9457. */
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

/**
 * An answer that is not the records: an HTTP status with an RFC 9457 body. The message is its `detail`; the
 * command line prints it as it is.
 */
export class ProblemError extends LogstrataError {
  readonly status: ProblemStatus;
  readonly title: string;
  readonly detail: string;
  readonly parameter: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly closes: boolean;
  readonly members: Readonly<Record<string, unknown>>;
  /** How long (ms) the answer is held back, so that guessing tokens is slow. */
  delayMs = 0;

  constructor(status: ProblemStatus, detail: string, extras: ProblemExtras = {}) {
    super(codes[status], detail, { cause: extras.cause });
    this.name = 'ProblemError';
    this.status = status;
    this.title = problemTitles[status];
    this.detail = detail;
    this.parameter = extras.parameter;
    this.headers = extras.headers ?? {};
    this.closes = extras.closes ?? false;
    this.members = extras.members ?? {};
  }
}

/** The problem (400) of a query parameter that can't be understood. It names the parameter. */
export function badParameter(parameter: string, detail: string): ProblemError {
  return new ProblemError(400, detail, { parameter });
}

/** The reason phrase of a status line. */
export function reasonPhrase(status: number): string {
  switch (status) {
    case 200:
      return 'OK';
    case 204:
      return 'No Content';
    case 304:
      return 'Not Modified';
    default:
      return problemTitles[status as ProblemStatus] ?? 'Unknown';
  }
}

/**
 * The body of `application/problem+json` (RFC 9457). `type` is `about:blank`: the status says what kind of problem it
 * is, and nothing that a program needs is told by the type alone. `parameter` and `members` are extension members.
 */
export function problemBody(problem: ProblemError): string {
  const { title, status, detail, parameter, members } = problem;
  return `${JSON.stringify({ type: 'about:blank', title, status, detail, parameter, ...members })}\n`;
}

/** The problem that tells a client why its query failed before the first byte of the answer. Never shows a stack trace. */
export function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (!isLogstrataError(error)) {
    return new ProblemError(500, 'the server failed; its log has the details', { cause: error });
  }
  const place = error.path === undefined || error.message.includes(error.path) ? '' : ` (${error.path})`;
  const detail = `${error.message}${place}`;
  switch (error.code) {
    case 'invalid':
      return new ProblemError(400, detail, { cause: error });
    case 'damaged':
      return new ProblemError(
        500,
        `the archive is damaged: ${detail}; "logstrata verify" lists what is lost`,
        {
          cause: error,
        },
      );
    case 'timeout':
      return new ProblemError(504, detail, { cause: error });
    case 'limit':
    case 'closed':
    case 'cancelled':
    case 'locked':
    case 'conflict':
    case 'unavailable':
      return new ProblemError(503, detail, { headers: { 'Retry-After': '1' }, cause: error });
    case 'not_found':
    case 'exists':
    case 'disk_full':
    case 'io':
    case 'unsupported':
    case 'absent':
      return new ProblemError(500, detail, { cause: error });
  }
}
